"""A finished run: what its folder holds, and every number of its report as JSON values."""

from dataclasses import asdict, dataclass
from typing import Any

from unitmargin.certificates.accuracy import EPSILONS
from unitmargin.certificates.exhibits import is_image
from unitmargin.certificates.spaces import INPUT
from unitmargin.certificates.tightness import Search
from unitmargin.frozen import FrozenNetwork
from unitmargin.reporting.coverage import coverage_curve, coverage_rows
from unitmargin.reporting.distances import summarize_searches
from unitmargin.runs.certificates import Certificates
from unitmargin.runs.certifier import table_units
from unitmargin.runs.findings import Findings
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.measurements import PICTURES, Measurements
from unitmargin.runs.recipe import Recipe
from unitmargin.training.train import EpochRecord


@dataclass(frozen=True, eq=False)
class Evidence:
    """What every file of a verified run folder holds."""

    recipe: Recipe
    history: tuple[EpochRecord, ...]
    frozen: FrozenNetwork
    certificates: Certificates
    findings: Findings
    searches: list[Search]
    measurements: Measurements


def read_evidence(folder: RunFolder) -> Evidence:
    """Read a run folder after ``verify``; a report is in input units, and so are its searches.

    Raises:
        RunError: a file is missing, damaged or does not fit the others; the message names the
            command.
    """
    return Evidence(
        folder.recipe(),
        folder.history(),
        folder.frozen(),
        folder.certificates(),
        folder.findings(),
        [search for search in folder.searches() if search.space == INPUT],
        folder.measurements(),
    )


def summarize(evidence: Evidence) -> dict[str, Any]:
    """Every number that the report shows; values that are not finite are None."""
    findings, measurements = evidence.findings, evidence.measurements
    not_run = {row.name for row in findings.checks if row.not_run}
    return {
        **_identity(evidence),
        **_accuracy(evidence.certificates),
        "coverage": coverage_rows(evidence.certificates),
        "coverage_curve": coverage_curve(evidence.certificates),
        # Unit gradients were promised, and so measured.
        "signed_distance": "unit_gradient" not in not_run,
        "unit_gradient_error": findings.value("unit_gradient"),
        "upd_error": findings.value("upd"),
        "orthogonality_error": findings.value("orthogonality"),
        "attacked_samples": measurements.reach.samples,
        "flipped_share": measurements.reach.flipped_share,
        "median_distance_ratio": measurements.reach.median_ratio,
        **summarize_searches(evidence.searches),
        **_training(evidence),
        "verified_samples": findings.samples,
        "passed": findings.passed,
        "checks": [row.model_dump() for row in findings.checks],
        "layers": [
            {"kind": kind, "smallest": low, "largest": high}
            for kind, low, high in measurements.layers
        ],
        "gallery": [
            exhibit.model_dump(exclude=PICTURES | {"other"}) | {"adversarial": exhibit.other}
            for exhibit in measurements.exhibits
        ],
        "history": [asdict(record) for record in evidence.history],
    }


def _identity(evidence: Evidence) -> dict[str, Any]:
    frozen, recipe = evidence.frozen, evidence.recipe
    low, high = evidence.measurements.input_range
    pixels = is_image(frozen.in_shape) and low >= 0.0 and high <= 1.0
    plain = "pixels in [0, 1]" if pixels else "the data's own units"
    return {
        "name": recipe.name,
        "model_sha256": evidence.findings.model_sha256,
        "model": recipe.model.name,
        "dataset": recipe.data.name,
        "classes": frozen.n_classes,
        "class_names": list(frozen.classes),
        "samples": len(evidence.certificates),
        "in_shape": list(frozen.in_shape),
        "input_space": table_units(frozen) or plain,
        "input_scale": frozen.input_scale,
        "dtype": recipe.dtype,
        "parameters": sum(tensor.numel() for tensor in frozen.state_dict().values()),
    }


def _accuracy(certificates: Certificates) -> dict[str, Any]:
    radii = certificates.radius[certificates.right]
    return {
        "clean_accuracy": float(certificates.right.double().mean()),
        "certified_accuracy": {
            str(epsilon): certificates.certified_accuracy(epsilon) for epsilon in EPSILONS
        },
        "right": len(radii),
        "mean_certified_radius": float(radii.mean()) if len(radii) else None,
        "median_certified_radius": float(radii.quantile(0.5)) if len(radii) else None,
    }


def _training(evidence: Evidence) -> dict[str, Any]:
    seconds = [record.seconds for record in evidence.history]
    return {
        "epochs": len(seconds),
        "seconds_per_epoch": sum(seconds) / len(seconds),
        "seconds_total": sum(seconds),
        **{name: evidence.frozen.facts.get(name, "") for name in ("hardware", "torch", "commit")},
    }
