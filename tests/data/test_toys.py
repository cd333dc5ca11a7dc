"""Two-dimensional toys: about the unit square, always the same points, and learnable."""

import pytest
import torch

from unitmargin.data.toys import TOYS, toy


@pytest.mark.parametrize("name", TOYS)
def test_points_lie_about_the_unit_square(name: str) -> None:
    dataset = toy(name)
    inputs, _ = dataset.train.batch(slice(None))
    assert dataset.in_shape == (2,)
    assert 0.85 < inputs.abs().max() < 1.2
    assert (len(dataset.train), len(dataset.test)) == (1000, 500)
    assert dataset.train.labels.bincount().min() >= 333


@pytest.mark.parametrize("name", TOYS)
def test_points_are_always_the_same_and_differ_between_splits(name: str) -> None:
    before = torch.get_rng_state()
    first, again = toy(name), toy(name)
    assert torch.equal(first.train.inputs, again.train.inputs)
    assert not torch.equal(first.train.inputs[:500], first.test.inputs)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", TOYS)
def test_classes_can_be_told_apart(name: str) -> None:
    dataset = toy(name)
    nearest = torch.cdist(dataset.test.inputs, dataset.train.inputs).argmin(1)
    right = dataset.train.labels[nearest] == dataset.test.labels
    assert right.float().mean() > 0.99
