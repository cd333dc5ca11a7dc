"""A finished run: what its folder holds, and every number of its report as JSON values."""

from dataclasses import asdict, dataclass
from typing import Any

from unitmargin.certificates.accuracy import HEADLINE_EPSILON
from unitmargin.certificates.epsilons import Epsilons, choose_epsilons
from unitmargin.certificates.spaces import INPUT
from unitmargin.certificates.tightness import Search
from unitmargin.frozen import FrozenNetwork
from unitmargin.reporting.classes import (
    class_rows,
    confused_pairs,
    confusion_matrix,
    sure_mistakes,
)
from unitmargin.reporting.coverage import coverage_curve, coverage_rows, threshold_choices
from unitmargin.reporting.distances import summarize_searches
from unitmargin.reporting.origin import Provenance, read_provenance
from unitmargin.reporting.statistics import median
from unitmargin.runs.certificates import Certificates
from unitmargin.runs.certifier import holds_pixels, radius_space
from unitmargin.runs.findings import Findings
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.measurements import PICTURES, Measurements
from unitmargin.runs.reading import RunReading
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
    provenance: Provenance

    @property
    def epsilons(self) -> Epsilons:
        """The radii at which the run is told."""
        return choose_epsilons(self.certificates.radius, holds_pixels(self.frozen))


def read_evidence(folder: RunFolder) -> Evidence:
    """Read a run folder after ``verify``; a report is in input units, and so are its searches.

    Raises:
        RunError: a file is missing, damaged or does not fit the others; the message names the
            command.
    """
    reading = RunReading(folder.path)
    return Evidence(
        reading.recipe(),
        reading.history(),
        reading.frozen(),
        reading.certificates(),
        reading.findings(),
        [search for search in reading.searches() if search.space == INPUT],
        reading.measurements(),
        read_provenance(reading),
    )


def summarize(evidence: Evidence) -> dict[str, Any]:
    """Every number that the report shows; values that are not finite are None."""
    findings, measurements = evidence.findings, evidence.measurements
    certificates, epsilons = evidence.certificates, evidence.epsilons
    not_run = {row.name for row in findings.checks if row.not_run}
    return {
        **_identity(evidence),
        **_accuracy(certificates, epsilons),
        "coverage": coverage_rows(certificates, epsilons),
        "choices": threshold_choices(certificates),
        "coverage_curve": coverage_curve(certificates, epsilons),
        **_by_class(certificates, evidence.frozen.classes, epsilons),
        # Unit gradients were promised, and so measured.
        "signed_distance": "unit_gradient" not in not_run,
        "unit_gradient_error": findings.value("unit_gradient"),
        "upd_error": findings.value("upd"),
        "orthogonality_error": findings.value("orthogonality"),
        "attacked_samples": measurements.reach.samples,
        "flipped_share": measurements.reach.flipped_share,
        "median_distance_ratio": measurements.reach.median_ratio,
        **summarize_searches(evidence.searches, epsilons),
        **_training(evidence),
        "verified_samples": findings.samples,
        "verified_with": {"torch": findings.torch, "hardware": findings.hardware},
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
        "history_epsilon": HEADLINE_EPSILON,
        "provenance": evidence.provenance._asdict(),
    }


def _identity(evidence: Evidence) -> dict[str, Any]:
    frozen, recipe = evidence.frozen, evidence.recipe
    return {
        "name": recipe.name,
        "model_sha256": evidence.findings.model_sha256,
        "model": recipe.model.name,
        "dataset": recipe.data.name,
        "classes": frozen.n_classes,
        "class_names": list(frozen.classes),
        "samples": len(evidence.certificates),
        "in_shape": list(frozen.in_shape),
        "input_space": radius_space(frozen),
        "input_scale": frozen.input_scale,
        "dtype": recipe.dtype,
        "profile": evidence.certificates.profile,
        "parameters": sum(tensor.numel() for tensor in frozen.state_dict().values()),
    }


def _accuracy(certificates: Certificates, epsilons: Epsilons) -> dict[str, Any]:
    radii = certificates.radius[certificates.right]
    margins = [certificates.margin[mask] for mask in (certificates.right, ~certificates.right)]
    right, wrong = map(median, margins)
    return {
        "clean_accuracy": certificates.clean_accuracy,
        "certified_accuracy": {
            str(epsilon): certificates.certified_accuracy(epsilon) for epsilon in epsilons.table
        },
        "headline_epsilon": epsilons.headline,
        "second_epsilon": epsilons.second,
        "right": len(radii),
        "median_margin_right": right,
        "median_margin_wrong": wrong,
        "mean_certified_radius": float(radii.mean()) if len(radii) else None,
        "median_certified_radius": median(radii),
    }


def _by_class(
    certificates: Certificates, classes: tuple[str, ...], epsilons: Epsilons
) -> dict[str, Any]:
    return {
        "by_class": class_rows(certificates, classes, epsilons),
        "confusion": confusion_matrix(certificates, len(classes)),
        "confused": confused_pairs(certificates, classes),
        "sure_mistakes": sure_mistakes(certificates, classes),
    }


def _training(evidence: Evidence) -> dict[str, Any]:
    seconds = [record.seconds for record in evidence.history]
    return {
        "epochs": len(seconds),
        "seconds_per_epoch": sum(seconds) / len(seconds),
        "seconds_total": sum(seconds),
        **{name: evidence.frozen.facts.get(name, "") for name in ("hardware", "torch", "commit")},
    }
