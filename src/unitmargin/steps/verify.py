"""Verify: try to break the promises of a frozen network; checks.json and an exit status."""

from dataclasses import dataclass
from typing import Any

import torch

from unitmargin.certificates import certify, closest_adversarial
from unitmargin.checks import (
    ORTHOGONALITY_TOLERANCE,
    UNIT_GRADIENT_TOLERANCE,
    UPD_TOLERANCE,
    audit,
)
from unitmargin.data import Samples
from unitmargin.frozen import FrozenNetwork
from unitmargin.runs import RunFolder, read_csv, write_json

RADIUS_AGREEMENT = 1e-10
"""Certificates written earlier may have been computed with another batch size or thread count,
which moves float64 logits by a few ulp; a larger difference means another model or other data."""


@dataclass(frozen=True)
class Check:
    """One promise, what was measured, and whether it held."""

    name: str
    passed: bool
    value: float
    bound: float
    detail: str


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
        _at_most("orthogonality", figures.orthogonality_error, ORTHOGONALITY_TOLERANCE),
        _at_most("upd", figures.upd_error, UPD_TOLERANCE),
        _at_most("unit_gradient", figures.unit_gradient_error, UNIT_GRADIENT_TOLERANCE),
        check_closed_form(frozen, inputs),
    ]
    if stored is not None:
        checks.append(check_stored(frozen, inputs, stored))
    return checks


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
    return Check("closed_form_outside_radius", value >= 1.0, value, 1.0, detail)


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


def verify_run(folder: RunFolder) -> tuple[str, bool]:
    """Check a run folder; the message, and whether every check passed."""
    recipe, frozen = folder.recipe(), folder.frozen()
    test = folder.dataset().test
    chosen = test.spread(recipe.verify_samples)
    inputs, labels = test.batch(chosen)
    rows = read_csv(folder.require(folder.certificates_file, f"certify {folder.path}"))
    stored = [rows[position] for position in chosen.tolist() if position < len(rows)]
    checks = verify(frozen, Samples(inputs, labels), stored)
    content: dict[str, Any] = {
        "passed": all(check.passed for check in checks),
        "samples": len(inputs),
        "checks": [vars(check) for check in checks],
    }
    write_json(folder.checks_file, content)
    failed = [check for check in checks if not check.passed]
    lines = [f"verify: FAILED {check.name}: {check.detail}" for check in failed]
    summary = f"verify: {len(checks) - len(failed)} of {len(checks)} checks passed on "
    lines.append(f"{summary}{len(inputs)} samples -> {folder.checks_file}")
    return "\n".join(lines), not failed
