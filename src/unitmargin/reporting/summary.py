"""The summary of a run: every number of its report, as one table of JSON values."""

from dataclasses import asdict
from typing import Any

from unitmargin.certificates.accuracy import EPSILONS
from unitmargin.certificates.exhibits import Exhibit, is_image
from unitmargin.reporting.distances import summarize_searches
from unitmargin.reporting.evidence import Evidence
from unitmargin.runs.measurements import PICTURES

PIXELS = "pixels in [0, 1]"
OWN_UNITS = "the data's own units"


def summarize(evidence: Evidence) -> dict[str, Any]:
    """Every number that the report shows; values that are not finite are None."""
    findings = evidence.findings
    return {
        **_identity(evidence),
        **_accuracy(evidence),
        "signed_distance": evidence.signed_distance,
        "unit_gradient_error": findings.value("unit_gradient"),
        "upd_error": findings.value("upd"),
        "orthogonality_error": findings.value("orthogonality"),
        **_closed_form(evidence),
        **summarize_searches(evidence.searches),
        **_training(evidence),
        "verified_samples": findings.samples,
        "passed": findings.passed,
        "checks": [row.model_dump() for row in findings.checks],
        "layers": [
            {"kind": kind, "smallest": low, "largest": high}
            for kind, low, high in evidence.measurements.layers
        ],
        "gallery": [_row(exhibit) for exhibit in evidence.measurements.exhibits],
        "history": [asdict(record) for record in evidence.history],
    }


def _identity(evidence: Evidence) -> dict[str, Any]:
    frozen, recipe = evidence.frozen, evidence.recipe
    return {
        "name": recipe.name,
        "model": recipe.model.name,
        "dataset": recipe.data.name,
        "classes": frozen.n_classes,
        "class_names": list(frozen.classes),
        "samples": len(evidence.certificates),
        "in_shape": list(frozen.in_shape),
        "input_space": _input_space(evidence),
        "input_scale": frozen.input_scale,
        "dtype": recipe.dtype,
        "parameters": sum(tensor.numel() for tensor in frozen.state_dict().values()),
    }


def _input_space(evidence: Evidence) -> str:
    low, high = evidence.measurements.input_range
    pixels = is_image(evidence.frozen.in_shape) and low >= 0.0 and high <= 1.0
    return PIXELS if pixels else OWN_UNITS


def _accuracy(evidence: Evidence) -> dict[str, Any]:
    certificates = evidence.certificates
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


def _closed_form(evidence: Evidence) -> dict[str, Any]:
    reach = evidence.measurements.reach
    return {
        "attacked_samples": reach.samples,
        "flipped_share": reach.flipped_share,
        "median_distance_ratio": reach.median_ratio,
    }


def _training(evidence: Evidence) -> dict[str, Any]:
    seconds = [record.seconds for record in evidence.history]
    return {
        "epochs": len(seconds),
        "seconds_per_epoch": sum(seconds) / len(seconds),
        "seconds_total": sum(seconds),
        **{name: evidence.frozen.facts.get(name, "") for name in ("hardware", "torch", "commit")},
    }


def _row(exhibit: Exhibit) -> dict[str, Any]:
    row = exhibit.model_dump(exclude=PICTURES)
    beyond = row.pop("other")
    return row | {"adversarial": beyond}
