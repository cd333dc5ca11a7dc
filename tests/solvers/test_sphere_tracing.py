"""What is special to polar sphere tracing: candidate classes, pruning, corners, steps."""

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
