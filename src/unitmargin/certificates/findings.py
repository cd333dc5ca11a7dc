"""What is found of certificates: by the closed form, solvers and the rounding attack."""

import math
from collections.abc import Sequence

import torch

from unitmargin.auditing.finding import Finding, not_run
from unitmargin.certificates.boundary import Inputs, Labels, Mask, Values
from unitmargin.certificates.certify import certify
from unitmargin.certificates.closest import closest_adversarial
from unitmargin.certificates.rounding_attack import near_boundary, rounding_attack
from unitmargin.certificates.rows import sample_name
from unitmargin.certificates.tightness import Search
from unitmargin.frozen import FrozenNetwork
from unitmargin.frozen.profiles import PROFILES

CLOSED_FORM = "closed_form_outside_radius"
SOLVERS = "solvers_outside_radius"

NEAR = (1e-2, 1e-4)
"""Distances from the boundary of the points that the rounding attack adds. The first is above the
slack of every profile on small networks, so that there are certificates to break; at the second the
network is linear up to the boundary, so that rounding alone decides."""


def closed_form_finding(
    frozen: FrozenNetwork, inputs: Inputs, index: Labels | None = None
) -> Finding:
    """No point of the closed form and its outward ray flips the label inside a certified radius.

    The value is the smallest ratio of the distance of a flipped point to the radius; the label is
    decided in float64. Without a flipped point of a certified sample it is not run. Samples are
    named by their numbers ``index`` among the test samples, if given.
    """
    radius = certify(frozen, inputs, domain="any").radius
    found = closest_adversarial(frozen, inputs, domain="any")
    worst, value = _smallest_ratio(found.flipped, found.flipped_distance, radius)
    if math.isinf(value):
        return not_run(CLOSED_FORM, "no certified sample had a point with another label on its ray")
    detail = ""
    if value < 1.0:
        detail = (
            f"{sample_name(worst, index)}: a point at distance "
            f"{float(found.flipped_distance[worst]):.9f} has another label, inside the certified "
            f"radius {float(radius[worst]):.9f}"
        )
    return Finding(name=CLOSED_FORM, passed=value >= 1.0, value=value, bound=1.0, detail=detail)


def _smallest_ratio(found: Mask, distance: Values, radius: Values) -> tuple[int, float]:
    """Where the found point is closest for its radius, and the ratio; infinite without both."""
    ratio = torch.where(found & (radius > 0), distance / radius, torch.inf)
    worst = int(ratio.argmin())
    return worst, float(ratio[worst])


def rounding_finding(frozen: FrozenNetwork, inputs: Inputs, index: Labels | None = None) -> Finding:
    """The rounding attack breaks no sound certificate, and enough naive ones to mean something.

    The inputs are attacked where they are and at the distances ``NEAR`` from the boundary, under
    every profile that holds the network's type, and its own; under each the attack must have power
    at one of these places. The value is the number of broken sound certificates.
    """
    places = [inputs, *(near_boundary(frozen, inputs, distance) for distance in NEAR)]
    held = ["float64"] if frozen.dtype == torch.float64 else list(PROFILES)
    names = dict.fromkeys([*held, frozen.profile])
    attacks = {name: [rounding_attack(frozen, points, name) for points in places] for name in names}
    broken = sum(attack.broken["sound"] for several in attacks.values() for attack in several)
    faults = [
        f"{name}: {sample_name(attack.points[0][0], index)} broken"
        for name, several in attacks.items()
        for attack in several
        if attack.points
    ]
    weak = [name for name, many in attacks.items() if not any(attack.has_power for attack in many)]
    if weak:
        faults.append(f"no power: too few naive certificates broke under {', '.join(weak)}")
    return Finding(
        name="rounding_attack", passed=not faults, value=broken, bound=0.0, detail="; ".join(faults)
    )


def search_finding(searches: Sequence[Search]) -> Finding:
    """No point that a solver found lies strictly inside the certified radius of its sample.

    The value is the smallest ratio of the distance of a found point to the radius. Without a point
    that was found for a certified sample it is not run.
    """
    value, detail = math.inf, ""
    for search in searches:
        worst, ratio = _smallest_ratio(search.found, search.distance, search.radius)
        value = min(value, ratio)
        if not detail and bool(search.inside().any()):
            detail = (
                f"test sample {int(search.index[worst])}: {search} found another label at distance "
                f"{float(search.distance[worst]):.9f}, inside the certified radius "
                f"{float(search.radius[worst]):.9f}"
            )
    if math.isinf(value):
        return not_run(SOLVERS, "no solver found a point for a certified sample that was right")
    return Finding(name=SOLVERS, passed=not detail, value=value, bound=1.0, detail=detail)
