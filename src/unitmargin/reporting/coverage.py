"""Coverage against threshold: who is left, and how accurate, when short radii are rejected."""

from typing import Any

import torch

from unitmargin.certificates.accuracy import EPSILONS, Coverage, coverage_beyond
from unitmargin.runs.certificates import Certificates

ABOUT = (
    "What is left when predictions with a short radius are rejected: a test sample is accepted if "
    "its radius is above the threshold. The accuracy is that of the accepted."
)

ADVICE = (
    "Choose reject_below of a guard as the smallest threshold at which few enough of the accepted "
    "are wrong. That an accepted prediction keeps its label within the threshold is proved; how "
    "many are accepted and right is measured on these samples and no guarantee for other data: "
    "choose on samples held out from training, and tell the accuracy on others."
)

CURVE_POINTS = 201
"""Thresholds of the curve: two points of the figure apart."""

BEYOND = 1.04
"""The curve ends this much beyond the largest radius, where nobody is left."""


def coverage_rows(certificates: Certificates) -> list[dict[str, Any]]:
    """At each radius of the tables: share and number of the accepted, wrong ones, accuracy.

    A sample is accepted if its radius is strictly above the threshold. The accuracy is that of the
    accepted, None where nobody is.
    """
    found = _accepted(certificates, torch.tensor(EPSILONS, dtype=torch.float64))
    return [
        {
            "threshold": threshold,
            "accepted": count,
            "coverage": count / len(certificates),
            "wrong": wrong,
            "accuracy": (count - wrong) / count if count else None,
        }
        for threshold, count, wrong in zip(
            EPSILONS, found.accepted.tolist(), found.wrong.tolist(), strict=True
        )
    ]


def coverage_curve(certificates: Certificates) -> dict[str, list[Any]]:
    """Accepted samples and wrong ones among them at evenly spaced thresholds, from 0 to beyond the
    largest radius."""
    least = min(epsilon for epsilon in EPSILONS if epsilon > 0)
    end = BEYOND * max(float(certificates.radius.max()), least)
    thresholds = torch.linspace(0.0, end, CURVE_POINTS, dtype=torch.float64)
    found = _accepted(certificates, thresholds)
    return {
        "threshold": thresholds.tolist(),
        "accepted": found.accepted.tolist(),
        "wrong": found.wrong.tolist(),
    }


def _accepted(certificates: Certificates, thresholds: torch.Tensor) -> Coverage:
    return coverage_beyond(certificates.right, certificates.radius, thresholds)
