"""The ground truth itself: both closed forms agree, and brute force does not contradict them."""

import pytest
import torch
from exact import EXACT, polyhedron

DTYPES = [torch.float32, torch.float64]

EXACTNESS = 1e-12
"""Two float64 formulas of the same number of size 1, each of a few dozen operations."""

NUDGE = 1e-9
"""Relative step across the boundary: far above float64 rounding, far below any other face."""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACT)
def test_the_closest_point_lies_at_the_distance(name: str, dtype: torch.dtype) -> None:
    truth = EXACT[name](dtype)
    move = truth.closest(truth.inputs) - truth.inputs.double()
    gap = move.flatten(1).norm(dim=1) - truth.distance(truth.inputs)
    assert gap.abs().max() <= EXACTNESS
    assert truth.distance(truth.inputs).min() > 1e-4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACT)
def test_the_label_changes_just_beyond_the_closest_point(name: str, dtype: torch.dtype) -> None:
    truth = EXACT[name](dtype)
    network, start = truth.network.in_float64(), truth.inputs.double()
    move = truth.closest(truth.inputs) - start
    label = network(start).argmax(1)
    assert torch.equal(network(start + (1 - NUDGE) * move).argmax(1), label)
    assert not bool((network(start + (1 + NUDGE) * move).argmax(1) == label).any())


@pytest.mark.parametrize("name", EXACT)
def test_no_point_of_the_open_ball_has_another_label(name: str) -> None:
    truth = EXACT[name](torch.float64)
    label = truth.network(truth.inputs).argmax(1)
    for _ in range(100):
        direction = torch.randn_like(truth.inputs).flatten(1)
        step = (1 - NUDGE) * truth.distance(truth.inputs) / direction.norm(dim=1)
        moved = truth.inputs + (step[:, None] * direction).view_as(truth.inputs)
        assert torch.equal(truth.network(moved).argmax(1), label)


@pytest.mark.parametrize("name", EXACT)
def test_several_classes_occur(name: str) -> None:
    truth = EXACT[name](torch.float64)
    labels = set(truth.network(truth.inputs).argmax(1).tolist())
    expected = {1} if name == "polyhedron" else set(range(truth.network.n_classes))
    assert labels == expected
    assert truth.network.n_classes - 1 in labels


def test_the_polyhedron_refuses_points_outside() -> None:
    truth = polyhedron()
    with pytest.raises(ValueError, match="inside the polyhedron"):
        truth.distance(10.0 + 0.0 * truth.inputs)
