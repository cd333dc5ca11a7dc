"""Coverage against threshold: who is left, and how accurate, when short radii are rejected."""

from typing import Any

import torch

from unitmargin.certificates.accuracy import Coverage, coverage_beyond
from unitmargin.certificates.epsilons import Epsilons, round_up
from unitmargin.reporting.statistics import share_interval
from unitmargin.runs.certificates import Certificates

ABOUT = (
    "What is left when predictions with a short radius are rejected: a test sample is accepted if "
    "its radius is above the threshold. The accuracy is that of the accepted."
)

CHOICE = (
    "How right do accepted predictions have to be? Each row has the smallest threshold at which "
    "they are as right as that on these samples, and what it costs in coverage: the number for "
    "reject_below of a guard."
)

ADVICE = (
    "That an accepted prediction keeps its label within the threshold is proved; how many are "
    "accepted and right is measured on these samples and no guarantee for other data. A threshold "
    "that was chosen on samples looks a little too good on the same ones: choose on samples held "
    "out from training, and tell the accuracy on others. Intervals of 95% are Wilson's, for a "
    "threshold that was fixed before."
)

TARGETS = (0.9, 0.95, 0.99, 0.999, 1.0)
"""Shares of right ones among the accepted that somebody may ask for."""

CURVE_POINTS = 201
"""Thresholds of the curve: two points of the figure apart."""

BEYOND = 1.04
"""The curve ends this much beyond the largest radius, where nobody is left."""


def coverage_rows(certificates: Certificates, epsilons: Epsilons) -> list[dict[str, Any]]:
    """At each radius of the tables: share and number of the accepted, wrong ones, accuracy.

    A sample is accepted if its radius is strictly above the threshold. The accuracy is that of the
    accepted with its interval of 95%, both None where nobody is.
    """
    return [_row(certificates, threshold) for threshold in epsilons.table]


def threshold_choices(certificates: Certificates) -> list[dict[str, Any]]:
    """For each share of right ones that the accepted do not have at threshold 0: the smallest
    threshold at which they have it, of three digits, with the rest of its row.

    The threshold is None where none does.
    """
    wrong = certificates.radius[~certificates.right].unique().tolist()
    # Rejecting raises the accuracy where it rejects a wrong one.
    candidates = sorted({0.0, *(round_up(radius) for radius in wrong if radius > 0)})
    thresholds = torch.tensor(candidates, dtype=torch.float64)
    found = _accepted(certificates, thresholds)
    accuracy = 1.0 - found.wrong / found.accepted  # NaN where nobody is left
    rows = []
    for target in TARGETS:
        reached = (accuracy >= target).nonzero().flatten().tolist()
        if reached[:1] != [0]:
            row = _row(certificates, candidates[reached[0]]) if reached else {"threshold": None}
            rows.append({"target": target, **row})
    return rows


def coverage_curve(certificates: Certificates, epsilons: Epsilons) -> dict[str, list[Any]]:
    """Accepted samples and wrong ones among them at evenly spaced thresholds, from 0 to beyond the
    largest radius."""
    end = BEYOND * max(float(certificates.radius.max()), epsilons.positive[0])
    thresholds = torch.linspace(0.0, end, CURVE_POINTS, dtype=torch.float64)
    found = _accepted(certificates, thresholds)
    return {
        "threshold": thresholds.tolist(),
        "accepted": found.accepted.tolist(),
        "wrong": found.wrong.tolist(),
    }


def _row(certificates: Certificates, threshold: float) -> dict[str, Any]:
    found = _accepted(certificates, torch.tensor([threshold], dtype=torch.float64))
    accepted, wrong = int(found.accepted), int(found.wrong)
    right = accepted - wrong
    return {
        "threshold": threshold,
        "accepted": accepted,
        "coverage": accepted / len(certificates),
        "wrong": wrong,
        "accuracy": right / accepted if accepted else None,
        "interval": share_interval(right, accepted),
    }


def _accepted(certificates: Certificates, thresholds: torch.Tensor) -> Coverage:
    return coverage_beyond(certificates.right, certificates.radius, thresholds)
