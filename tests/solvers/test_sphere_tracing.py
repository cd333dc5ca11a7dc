"""What is special to polar sphere tracing: candidate classes, pruning, corners, steps."""

import pytest
import torch
from solvers.cases import exact, labelled, piecewise_linear, trained_ugnn
from torch import nn

from unitmargin.solvers import minimal_perturbation

BOX = (0.0, 1.0)

SAME = 1.0 + 1e-9
"""Paths of the same class are the same path."""


def test_other_classes_are_tried_and_may_be_nearer() -> None:
    frozen, x, labels = trained_ugnn()
    one = minimal_perturbation(frozen, x, labels, box=BOX, n_candidates=1)
    nine = minimal_perturbation(frozen, x, labels, box=BOX, n_candidates=9)
    assert bool((nine.distance <= SAME * one.distance).all())
    assert float((nine.distance / one.distance).min()) < 0.99


def test_certified_pruning_drops_most_classes_and_loses_nothing() -> None:
    frozen, x, labels = trained_ugnn()
    pruned = minimal_perturbation(frozen, x, labels, n_candidates=9)
    plain = minimal_perturbation(nn.Sequential(frozen), x, labels, n_candidates=9)
    assert bool((pruned.distance <= 1.001 * plain.distance).all())
    assert int(pruned.n_backward.sum()) < int(plain.n_backward.sum()) / 3


def test_one_class_costs_at_most_its_steps() -> None:
    frozen, x, labels = trained_ugnn()
    for steps in (1, 2, 5, 30):
        found = minimal_perturbation(frozen, x, labels, steps=steps, n_candidates=1)
        assert int(found.n_backward.max()) <= steps


def test_classes_are_ordered_by_linearised_distance_where_none_is_certified() -> None:
    truth, x, labels = exact("affine", torch.float64)
    found = minimal_perturbation(nn.Sequential(truth.network), x, labels, n_candidates=1)
    assert torch.allclose(found.distance, truth.distance(x), rtol=1e-6)


def test_corner_steps_find_corners() -> None:
    truth, x, labels = exact("box", torch.float64)
    few = minimal_perturbation(truth.network, x, labels, steps=9)
    enough = minimal_perturbation(truth.network, x, labels, steps=30)
    ratios = [found.distance / truth.distance(x) for found in (few, enough)]
    assert float(ratios[0].max()) > 1.001
    assert float(ratios[1].max()) < 1.00001


class Faces(nn.Module):
    """Inside of a box whose faces are ``offsets`` away from 0; the margin grows by another slope
    from each, so that its gradient need not show the nearest one."""

    def __init__(self, offsets: torch.Tensor, slopes: torch.Tensor) -> None:
        super().__init__()
        self.offsets, self.slopes = nn.Parameter(offsets), nn.Parameter(slopes)

    def distances(self, x: torch.Tensor) -> torch.Tensor:
        return self.offsets + torch.cat((x, -x), dim=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        margin = (self.slopes * self.distances(x)).amin(1)
        return torch.stack((margin, torch.zeros_like(margin)), dim=1)


@pytest.mark.parametrize("entries", [1, 2, 8])
def test_of_few_entries_the_nearest_valley_is_found(entries: int) -> None:
    generator = torch.Generator().manual_seed(entries)
    offsets = 0.5 + torch.rand(2 * entries, generator=generator, dtype=torch.float64)
    slopes = 1.0 + 9.0 * torch.rand(2 * entries, generator=generator, dtype=torch.float64)
    x = 0.4 * torch.rand(24, entries, generator=generator, dtype=torch.float64) - 0.2
    model = Faces(offsets, slopes)
    found = minimal_perturbation(model, x, torch.zeros(24, dtype=torch.int64))
    truth = model.distances(x).amin(1).detach()
    assert torch.allclose(found.distance, truth, rtol=1e-8, atol=0.0)


def test_more_steps_are_no_worse_on_the_whole() -> None:
    model = piecewise_linear()
    x, labels = labelled(model)
    means = [
        float(minimal_perturbation(model, x, labels, steps=steps).distance.mean())
        for steps in (5, 30, 150)
    ]
    assert means[2] <= 1.001 * means[1] <= 1.002 * means[0]


def test_thirty_steps_are_within_a_thousandth_of_three_hundred_on_a_ugnn() -> None:
    frozen, x, labels = trained_ugnn()
    few, thirty, many = (
        minimal_perturbation(frozen, x, labels, steps=steps, n_candidates=9).distance.mean()
        for steps in (5, 30, 300)
    )
    assert thirty <= 1.001 * many < few
