"""Certified accuracy: right samples with a radius strictly above the threshold."""

import torch

from unitmargin.certificates.accuracy import EPSILONS, certified_accuracies, certified_accuracy

RADIUS = torch.tensor([0.0, 0.25, 0.5, 0.5, 2.0], dtype=torch.float64)
RIGHT = torch.tensor([True, True, True, False, False])


def test_right_samples_with_a_larger_radius_count() -> None:
    shares = [certified_accuracy(RIGHT, RADIUS, epsilon) for epsilon in (0.0, 0.25, 0.4, 0.5)]
    assert shares == [0.4, 0.2, 0.2, 0.0]


def test_the_curve_is_the_share_at_each_radius() -> None:
    epsilons = torch.tensor([*EPSILONS, 0.5], dtype=torch.float64)
    curve = certified_accuracies(RIGHT, RADIUS, epsilons).tolist()
    assert curve == [certified_accuracy(RIGHT, RADIUS, float(epsilon)) for epsilon in epsilons]
