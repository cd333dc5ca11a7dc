"""The summary of a run: every number of its report, as one table of JSON values."""

import math
from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor

from unitmargin.auditing.audit import audit
from unitmargin.auditing.gradients import pair_gradient_norms
from unitmargin.certificates.accuracy import EPSILONS
from unitmargin.certificates.closest import closest_adversarial
from unitmargin.data import Samples
from unitmargin.reporting.distances import summarize_searches
from unitmargin.reporting.evidence import Evidence
from unitmargin.reporting.gallery import Exhibit, is_image

GRADIENT_SAMPLES = 256
"""Test samples whose pairwise gradient norms are drawn."""

MOST_NORMS = 4_000_000
"""Bounds the memory of the gradient norms: 1000 classes have half a million pairs a sample."""

ATTACKED_SAMPLES = 128
"""Test samples on which the closed form is tried: each takes up to 72 float64 forward passes."""

PIXELS = "pixels in [0, 1]"
OWN_UNITS = "the data's own units"


def summarize(evidence: Evidence, exhibits: Sequence[Exhibit]) -> dict[str, Any]:
    """Every number that the report shows; values that are not finite are None.

    Cost: one backward and up to 72 float64 forward passes for each attacked sample.
    """
    return {
        **_identity(evidence),
        **_accuracy(evidence),
        "signed_distance": evidence.signed_distance,
        "unit_gradient_error": finite(evidence.check("unit_gradient")),
        "upd_error": finite(evidence.check("upd")),
        "orthogonality_error": finite(evidence.check("orthogonality")),
        **_attack(evidence),
        **summarize_searches(evidence.searches),
        **_training(evidence),
        "verified_samples": evidence.verified_samples,
        "passed": all(check["passed"] for check in evidence.checks),
        "checks": [
            check | {"value": finite(check["value"]), "bound": finite(check["bound"])}
            for check in evidence.checks
        ],
        "layers": _layers(evidence),
        "gallery": [_row(exhibit) for exhibit in exhibits],
        "history": evidence.history,
    }


def gradient_norms(evidence: Evidence) -> Float[Tensor, "batch pairs"]:
    """Pairwise gradient norms at test samples, evaluated in float64."""
    pairs = math.comb(evidence.frozen.n_classes, 2)
    count = max(1, min(GRADIENT_SAMPLES, MOST_NORMS // pairs))
    inputs, _ = evidence.test.batch(evidence.test.spread(count))
    return pair_gradient_norms(evidence.frozen.in_float64(), inputs.double())


def finite(value: float | None) -> float | None:
    """The value, or None for none, NaN and infinity, which JSON does not have."""
    return float(value) if value is not None and math.isfinite(value) else None


def _identity(evidence: Evidence) -> dict[str, Any]:
    frozen, recipe = evidence.frozen, evidence.recipe
    return {
        "name": recipe.name,
        "model": recipe.model.name,
        "dataset": recipe.data.name,
        "classes": frozen.n_classes,
        "class_names": list(frozen.classes),
        "samples": len(evidence.test),
        "in_shape": list(frozen.in_shape),
        "input_space": _input_space(evidence.test),
        "input_scale": frozen.input_scale,
        "dtype": recipe.dtype,
        "parameters": sum(tensor.numel() for tensor in frozen.state_dict().values()),
    }


def _input_space(samples: Samples) -> str:
    low, high = float(samples.inputs.min()), float(samples.inputs.max()) / samples.scale
    return PIXELS if is_image(samples.in_shape) and low >= 0.0 and high <= 1.0 else OWN_UNITS


def _accuracy(evidence: Evidence) -> dict[str, Any]:
    predictions = evidence.predictions
    radii = predictions.radius[predictions.right]
    return {
        "clean_accuracy": float(predictions.right.double().mean()),
        "certified_accuracy": {
            str(epsilon): predictions.certified_accuracy(epsilon) for epsilon in EPSILONS
        },
        "right": len(radii),
        "mean_certified_radius": finite(float(radii.mean())) if len(radii) else None,
        "median_certified_radius": finite(float(radii.quantile(0.5))) if len(radii) else None,
    }


def _attack(evidence: Evidence) -> dict[str, Any]:
    index = evidence.test.spread(ATTACKED_SAMPLES)
    inputs, _ = evidence.test.batch(index)
    found = closest_adversarial(evidence.frozen, inputs)
    radius = evidence.predictions.radius[index]
    ratios = (found.flipped_distance / radius)[found.flipped & (radius > 0)]
    return {
        "attacked_samples": len(index),
        "flipped_share": float(found.flipped.double().mean()),
        "median_distance_ratio": finite(float(ratios.quantile(0.5))) if len(ratios) else None,
    }


def _training(evidence: Evidence) -> dict[str, Any]:
    seconds = [row["seconds"] for row in evidence.history]
    return {
        "epochs": len(seconds),
        "seconds_per_epoch": sum(seconds) / len(seconds),
        "seconds_total": sum(seconds),
        **{name: evidence.frozen.facts.get(name, "") for name in ("hardware", "torch", "commit")},
    }


def _layers(evidence: Evidence) -> list[dict[str, Any]]:
    rows = evidence.frozen.facts.get("layers")
    if rows is None:
        measured = audit(evidence.frozen).layers
        rows = [(layer.kind, layer.smallest, layer.largest) for layer in measured]
    return [{"kind": kind, "smallest": low, "largest": high} for kind, low, high in rows]


def _row(exhibit: Exhibit) -> dict[str, Any]:
    return {
        "index": exhibit.index,
        "why": exhibit.why,
        "label": exhibit.label,
        "predicted": exhibit.predicted,
        "radius": exhibit.radius,
        "adversarial": exhibit.other,
        "distance": exhibit.distance,
    }
