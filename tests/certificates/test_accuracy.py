"""Certified accuracy: right samples with a radius strictly above the threshold."""

import math
from typing import Any

import numpy as np
import pandas
import pytest
import torch

from unitmargin.certificates.accuracy import (
    EPSILONS,
    certified_accuracies,
    certified_accuracy,
    certified_share,
)
from unitmargin.certificates.certify import Certificate

RADIUS = torch.tensor([0.0, 0.25, 0.5, 0.5, 2.0], dtype=torch.float64)
RIGHT = torch.tensor([True, True, True, False, False])


def test_right_samples_with_a_larger_radius_count() -> None:
    shares = [certified_share(RIGHT, RADIUS, epsilon) for epsilon in (0.0, 0.25, 0.4, 0.5)]
    assert shares == [0.4, 0.2, 0.2, 0.0]


def test_the_curve_is_the_share_at_each_radius() -> None:
    epsilons = torch.tensor([*EPSILONS, 0.5], dtype=torch.float64)
    curve = certified_accuracies(RIGHT, RADIUS, epsilons).tolist()
    assert curve == [certified_share(RIGHT, RADIUS, float(epsilon)) for epsilon in epsilons]


def certificate() -> Certificate:
    """One pair of logits a radius; label 0 where it is right."""
    label = (~RIGHT).long()
    return Certificate(label, 1 - label, RADIUS, RADIUS, torch.zeros_like(RADIUS))


@pytest.mark.parametrize(
    "labels", [torch.zeros(5, dtype=dtype) for dtype in (torch.int64, torch.int32)]
)
def test_one_threshold_for_all_or_one_a_sample(labels: torch.Tensor) -> None:
    assert certified_accuracy(certificate(), labels, 0.25) == 0.2
    assert certified_accuracy(certificate(), labels, torch.tensor(0.25)) == 0.2
    assert certified_accuracy(certificate(), labels, torch.tensor([0.0, 0.3, 0.4, 0.0, 9.0])) == 0.2
    assert certified_accuracy(certificate(), labels, torch.tensor([0.0, 0.2, 0.4, 0.0, 9.0])) == 0.4


def test_a_number_is_compared_in_float64() -> None:
    radius = torch.tensor([0.1, 0.1 + 1e-12], dtype=torch.float64)
    label = torch.zeros(2, dtype=torch.int64)
    claims = Certificate(label, label + 1, radius, radius, radius)
    for epsilon in (0.1, np.float64(0.1), np.full(2, 0.1), pandas.Series([0.1, 0.1])):
        assert certified_accuracy(claims, label.numpy(), epsilon) == 0.5


def test_labels_of_a_series_count_by_position() -> None:
    labels = pandas.Series([0, 0, 0, 1, 0], index=[4, 3, 2, 1, 0])
    assert certified_accuracy(certificate(), labels, 0.25) == 0.4


@pytest.mark.parametrize(
    ("labels", "epsilon", "message"),
    [
        (torch.zeros(4).long(), 0.5, r"labels must be one a sample, shape \(5,\)"),
        (torch.zeros(5), 0.5, "labels must be of an integer dtype, got torch.float32"),
        (pandas.DataFrame({"y": [0] * 5}), 0.5, r"shape \(5,\) .*got \(5, 1\)"),
        (torch.zeros(5).long(), torch.zeros(4), r"epsilon must be one number or one a sample"),
        (torch.zeros(5).long(), torch.zeros(5, 1), r"got shape \(5, 1\)"),
        (torch.zeros(5).long(), math.nan, "epsilon must be finite and >= 0, got nan"),
        (torch.zeros(5).long(), math.inf, "epsilon must be finite and >= 0, got inf"),
        (torch.zeros(5).long(), -0.1, "epsilon must be finite and >= 0, got -0.1"),
        (torch.zeros(5).long(), torch.tensor([0.0, 0.0, 0.0, 0.0, -1.0]), "finite and >= 0"),
    ],
)
def test_other_shapes_and_thresholds_are_refused(
    labels: Any, epsilon: float | torch.Tensor, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        certified_accuracy(certificate(), labels, epsilon)


def test_no_sample_has_no_accuracy() -> None:
    none = torch.zeros(0).double()
    empty = Certificate(none.long(), none.long(), none, none, none)
    with pytest.raises(ValueError, match="with a sample at least"):
        certified_accuracy(empty, none.long(), 0.5)
