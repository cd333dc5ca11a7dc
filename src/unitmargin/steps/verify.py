"""Verify: try to break a frozen network's promises; checks.json, solvers.csv, exit status."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from unitmargin.auditing.audit import Audit, audit
from unitmargin.auditing.gradients import UNIT_GRADIENT_TOLERANCE
from unitmargin.certificates.certify import certify
from unitmargin.certificates.closest import closest_adversarial
from unitmargin.certificates.rounding_attack import near_boundary, rounding_attack
from unitmargin.certificates.tightness import Box, Search, describe, search_boundary, tightness
from unitmargin.data import Samples
from unitmargin.foundation.files import write_json
from unitmargin.foundation.tables import read_csv
from unitmargin.frozen import FrozenNetwork
from unitmargin.frozen.profiles import PROFILES
from unitmargin.layers.promises import GNP, LIPSCHITZ, SCALING, UPD
from unitmargin.runs.certificates import RADIUS_AGREEMENT
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.provenance import provenance
from unitmargin.runs.searches import write_searches
from unitmargin.solvers import SOLVERS
from unitmargin.solvers.choice import Choice, read_choice

DEFAULT_SOLVERS = ("sphere_tracing",)

UNIT_BOX = (0.0, 1.0)
"""Where pixels live; the box of the paper's tables."""

CLOSED_FORM = "closed_form_outside_radius"

BoxChoice = Literal["auto", "off", "only"]


NEAR = (1e-2, 1e-4)
"""Distances from the boundary of the points that the rounding attack adds. The first is above the
slack of every profile on small networks, so that there are certificates to break; at the second the
network is linear up to the boundary, so that rounding alone decides."""


@dataclass(frozen=True)
class Check:
    """One promise, what was measured, and whether it held.

    A check of what the network does not promise is skipped: ``skipped`` says why, and there is no
    value.
    """

    name: str
    passed: bool
    value: float | None
    bound: float | None
    detail: str
    skipped: str = ""


def verify(
    frozen: FrozenNetwork, samples: Samples, stored: list[dict[str, str]] | None = None
) -> list[Check]:
    """Measure every promise of a frozen network on the given samples.

    Args:
        frozen: the deployed network.
        samples: inputs on which gradients are measured and certificates attacked.
        stored: rows of certificates.csv for the same samples, to be compared.

    Cost: C + 1 backward and about 75 float64 forward passes a sample.
    """
    inputs, _ = samples.batch(slice(0, len(samples)))
    wide = frozen.in_float64()
    figures = audit(wide, inputs.double())
    checks = [
        _at_most(GNP.finding, figures.orthogonality_error, GNP.tolerance),
        _at_most(figures.head.finding, figures.head_error, figures.head.tolerance),
    ]
    if figures.signed_distance:
        unit = _at_most("unit_gradient", figures.unit_gradient_error, UNIT_GRADIENT_TOLERANCE)
        checks += [unit, check_closed_form(frozen, inputs)]
    else:
        checks += _lower_bound_checks(figures)
    if stored is not None:
        checks.append(check_stored(frozen, inputs, stored))
    return checks


def _lower_bound_checks(figures: Audit) -> list[Check]:
    """What is left to check of a network that is 1-Lipschitz and no more."""
    checks = [_at_most(LIPSCHITZ.finding, figures.lipschitz_error, LIPSCHITZ.tolerance)]
    if figures.head != UPD:
        words = figures.head.name.replace("_", " ")
        checks.append(_skip(UPD.finding, f"the head promises {words}"))
    layers = sorted({row.kind for row in figures.layers if not row.gnp and row.promise != SCALING})
    reason = "not a signed distance classifier: " + (
        f"{', '.join(layers)} not GNP" if layers else "no UPD head"
    )
    return [*checks, _skip("unit_gradient", reason), _skip(CLOSED_FORM, reason)]


def _skip(name: str, reason: str) -> Check:
    return Check(name, True, None, None, "", reason)


def _at_most(name: str, value: float, bound: float) -> Check:
    passed = value <= bound
    return Check(name, passed, value, bound, "" if passed else f"{value:.3e} exceeds {bound:.0e}")


def check_closed_form(frozen: FrozenNetwork, inputs: torch.Tensor) -> Check:
    """No point of the closed form and its outward ray flips the label inside a certified radius.

    The value is the smallest ratio of the distance of a flipped point to the radius; the label is
    decided in float64.
    """
    certificate = certify(frozen, inputs)
    found = closest_adversarial(frozen, inputs)
    certified = found.flipped & (certificate.radius > 0)
    ratio = torch.where(certified, found.flipped_distance / certificate.radius, torch.inf)
    worst = int(ratio.argmin())
    value = float(ratio[worst])
    detail = ""
    if value < 1.0:
        detail = (
            f"sample {worst}: a point at distance {float(found.flipped_distance[worst]):.9f} has "
            f"another label, inside the certified radius {float(certificate.radius[worst]):.9f}"
        )
    return Check(CLOSED_FORM, value >= 1.0, value, 1.0, detail)


def check_stored(
    frozen: FrozenNetwork, inputs: torch.Tensor, stored: list[dict[str, str]]
) -> Check:
    """Certificates derived again agree with the file: same labels, radii within a few ulp."""
    certificate = certify(frozen, inputs)
    if len(stored) != len(inputs):
        detail = f"{len(stored)} rows for {len(inputs)} samples; run certify again"
        return Check("stored_certificates", False, float("inf"), RADIUS_AGREEMENT, detail)
    radii = torch.tensor([float(row["radius"]) for row in stored], dtype=torch.float64)
    labels = torch.tensor([int(row["predicted"]) for row in stored])
    gap = (radii - certificate.radius).abs()
    relabelled = (labels != certificate.label) & (certificate.radius > RADIUS_AGREEMENT)
    gap = torch.where(relabelled, torch.inf, gap)
    worst, value = int(gap.argmax()), float(gap.max())
    passed = value <= RADIUS_AGREEMENT
    detail = "" if passed else f"sample {worst}: stored label or radius differs by {value:.3e}"
    return Check("stored_certificates", passed, value, RADIUS_AGREEMENT, detail)


def check_rounding(frozen: FrozenNetwork, inputs: torch.Tensor) -> Check:
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
    return Check("rounding_attack", not faults, float(broken), 0.0, "; ".join(faults))


def check_searches(searches: Sequence[Search]) -> Check:
    """No point that a solver found lies strictly inside the certified radius of its sample.

    The value is the smallest ratio of the distance of a found point to the radius.
    """
    value, detail = math.inf, ""
    for search in searches:
        claimed = search.found & (search.radius > 0)
        ratio = torch.where(claimed, search.distance / search.radius, torch.inf)
        worst = int(ratio.argmin())
        value = min(value, float(ratio[worst]))
        if not detail and bool(search.inside().any()):
            detail = (
                f"test sample {int(search.index[worst])}: {search} found another label at distance "
                f"{float(search.distance[worst]):.9f}, inside the certified radius "
                f"{float(search.radius[worst]):.9f}"
            )
    return Check("solvers_outside_radius", not detail, value, 1.0, detail)


def choose_boxes(samples: Samples, choice: BoxChoice) -> list[Box | None]:
    """Without a box, and in [0, 1] where all data lie in it, as far as the choice allows.

    Raises:
        ValueError: the box alone is asked for, and some test input lies outside it.
    """
    low, high = (float(end) / samples.scale for end in samples.inputs.aminmax())
    fits = low >= UNIT_BOX[0] and high <= UNIT_BOX[1]
    if choice == "only" and not fits:
        raise ValueError(
            f"box can be 'only' for inputs in [0, 1], got inputs from {low:g} to "
            f"{high:g}; use 'off'"
        )
    free: list[Box | None] = [] if choice == "only" else [None]
    return [*free, UNIT_BOX] if fits and choice != "off" else free


def choose_solvers(words: Sequence[str]) -> tuple[Choice, ...]:
    """The solvers with their options, each choice once, or an error that lists the known ones."""
    if not words:
        raise ValueError(
            f"solvers must be one or more of {', '.join(SOLVERS)}, got none; choose among them"
        )
    return tuple(dict.fromkeys(read_choice(word) for word in words))


def verify_run(
    folder: RunFolder,
    solvers: Sequence[str] = DEFAULT_SOLVERS,
    n_samples: int | None = None,
    box: BoxChoice = "auto",
    rounding: bool = False,
) -> tuple[str, bool]:
    """Check a run folder; the message, and whether every check passed.

    Args:
        folder: a certified run.
        solvers: names of ``SOLVERS``, with options as in ``sphere_tracing:steps=300``; see
            :func:`read_choice`.
        n_samples: test samples to be attacked, spread evenly; default: the recipe's.
        box: "auto" searches without a box, and within [0, 1] where the data lie in it; "off"
            only without, "only" only within.
        rounding: add the rounding attack, thousands of forward passes a sample.

    Raises:
        ValueError: an unknown solver or option, fewer than one sample, a box that the data leave.
        RunError: a file of an earlier step is missing.

    Cost: that of the solvers; for the default at most 90 forward and backward passes a sample and
    box, 27 to 34 on digits and CIFAR-10.
    """
    choices = choose_solvers(solvers)
    recipe, frozen = folder.recipe(), folder.frozen()
    count = recipe.verify_samples if n_samples is None else n_samples
    if count < 1:
        raise ValueError(f"samples must be at least 1, got {count}; leave it out for the recipe's")
    rows = read_csv(folder.require(folder.certificates_file, f"certify {folder.path}"))
    test = folder.dataset().test
    boxes = choose_boxes(test, box)
    chosen = test.spread(count)
    inputs, labels = test.batch(chosen)
    stored = [rows[position] for position in chosen.tolist() if position < len(rows)]
    checks = verify(frozen, Samples(inputs, labels), stored)
    searches = [
        search_boundary(frozen, inputs, labels, chosen, choice.name, bounds, **dict(choice.options))
        for bounds in boxes
        for choice in choices
    ]
    checks.append(check_searches(searches))
    if rounding:
        checks.append(check_rounding(frozen, inputs))
    write_searches(folder.solvers_file, searches)
    write_json(folder.checks_file, _content(checks, searches, len(inputs)))
    return _message(folder, checks, searches, len(inputs)), all(check.passed for check in checks)


def _content(checks: list[Check], searches: list[Search], samples: int) -> dict[str, Any]:
    return {
        "passed": all(check.passed for check in checks),
        "samples": samples,
        **provenance(),
        "checks": [vars(check) for check in checks],
        "solvers": [describe(search) for search in searches],
    }


def _message(folder: RunFolder, checks: list[Check], searches: list[Search], samples: int) -> str:
    lines = []
    for search in searches:
        figures = tightness(search)
        lines.append(
            f"verify: {search}: certificate / distance {figures.mean:.4f} ± {figures.spread:.4f}, "
            f"smallest {figures.smallest:.4f}; found {figures.n} of {figures.right}"
        )
    failed = [check for check in checks if not check.passed]
    lines += [f"verify: FAILED {check.name}: {check.detail}" for check in failed]
    skipped = [check for check in checks if check.skipped]
    if skipped:
        names = ", ".join(check.name for check in skipped)
        lines.append(f"verify: skipped {names}: {skipped[-1].skipped}")
    tried = len(checks) - len(skipped)
    lines.append(
        f"verify: {tried - len(failed)} of {tried} checks passed on {samples} samples "
        f"-> {folder.checks_file}"
    )
    return "\n".join(lines)
