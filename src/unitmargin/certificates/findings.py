"""What is found of certificates: by the closed form, solvers, a file and the rounding attack."""

import math
from collections.abc import Sequence

import torch

from unitmargin.auditing.finding import Finding, at_most, not_run
from unitmargin.certificates.boundary import TINY, Inputs, Labels, Mask, Values
from unitmargin.certificates.certify import certify
from unitmargin.certificates.closest import closest_adversarial
from unitmargin.certificates.rounding_attack import near_boundary, rounding_attack
from unitmargin.certificates.tightness import Search
from unitmargin.frozen import FrozenNetwork
from unitmargin.frozen.profiles import PROFILES

CLOSED_FORM = "closed_form_outside_radius"
SOLVERS = "solvers_outside_radius"

RADIUS_AGREEMENT = 1e-10
"""Radii written earlier may have been computed with another batch size or thread count, which
moves float64 logits by a few ulp; a larger difference means another model or other data. Where
inputs are in large units the bound of that rounding is larger, and takes its place."""

NEAR = (1e-2, 1e-4)
"""Distances from the boundary of the points that the rounding attack adds. The first is above the
slack of every profile on small networks, so that there are certificates to break; at the second the
network is linear up to the boundary, so that rounding alone decides."""


def closed_form_finding(frozen: FrozenNetwork, inputs: Inputs) -> Finding:
    """No point of the closed form and its outward ray flips the label inside a certified radius.

    The value is the smallest ratio of the distance of a flipped point to the radius; the label is
    decided in float64. Without a flipped point of a certified sample it is not run.
    """
    radius = certify(frozen, inputs, domain="any").radius
    found = closest_adversarial(frozen, inputs, domain="any")
    worst, value = _smallest_ratio(found.flipped, found.flipped_distance, radius)
    if math.isinf(value):
        return not_run(CLOSED_FORM, "no certified sample had a point with another label on its ray")
    detail = ""
    if value < 1.0:
        detail = (
            f"sample {worst}: a point at distance {float(found.flipped_distance[worst]):.9f} has "
            f"another label, inside the certified radius {float(radius[worst]):.9f}"
        )
    return Finding(name=CLOSED_FORM, passed=value >= 1.0, value=value, bound=1.0, detail=detail)


def _smallest_ratio(found: Mask, distance: Values, radius: Values) -> tuple[int, float]:
    """Where the found point is closest for its radius, and the ratio; infinite without both."""
    ratio = torch.where(found & (radius > 0), distance / radius, torch.inf)
    worst = int(ratio.argmin())
    return worst, float(ratio[worst])


def stored_finding(
    frozen: FrozenNetwork, inputs: Inputs, predicted: Labels, radius: Values
) -> Finding:
    """Certificates derived again agree with stored ones: same labels, radii within a few ulp.

    The value is the largest difference, in units of ``RADIUS_AGREEMENT`` where rounding may be
    larger.
    """
    certificate = certify(frozen, inputs, domain="any")
    slope = certificate.radius / (certificate.margin - certificate.slack).clamp_min(TINY)
    rounding = (certificate.slack * slope).clamp_min(RADIUS_AGREEMENT)
    gap = (radius - certificate.radius).abs() * (RADIUS_AGREEMENT / rounding)
    relabelled = (predicted != certificate.label) & (certificate.radius > rounding)
    gap = torch.where(relabelled, torch.inf, gap)
    worst, value = int(gap.argmax()), float(gap.max())
    found = at_most("stored_certificates", value, RADIUS_AGREEMENT)
    detail = f"sample {worst}: stored label or radius differs by {value:.3e}"
    return found if found.passed else found.changed(detail=detail)


def rounding_finding(frozen: FrozenNetwork, inputs: Inputs) -> Finding:
    """The rounding attack breaks no sound certificate, and enough naive ones to mean something.

    The inputs are attacked where they are and at the distances ``NEAR`` from the boundary, under
    every profile that holds the network's weights; under each the attack must have power at one of
    these places. The value is the number of broken sound certificates.
    """
    places = [inputs, *(near_boundary(frozen, inputs, distance) for distance in NEAR)]
    names = ["float64"] if frozen.dtype == torch.float64 else list(PROFILES)
    attacks = {name: [rounding_attack(frozen, points, name) for points in places] for name in names}
    broken = sum(attack.broken["sound"] for several in attacks.values() for attack in several)
    faults = [
        f"{name}: sample {attack.points[0][0]} broken"
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
