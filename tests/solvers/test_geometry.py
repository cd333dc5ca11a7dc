"""Rays in a box, vectors, and half-spaces."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.solvers.geometry import cosine_decay, linear_distance, ray_point, unit
from unitmargin.solvers.half_spaces import closest_in_half_spaces

ROUNDING = 1e-9
"""A square root of a float64 difference of numbers of size 1."""

UNIT = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
"""The box [0, 1]."""

CORNER = 2.0**-52
"""Rounding of the sum ``start + t * direction`` that ends at a bound of size 1."""


@given(st.integers(0, 10_000), st.integers(1, 9))
def test_a_ray_in_the_box_has_the_asked_length_or_ends_in_a_corner(seed: int, size: int) -> None:
    torch.manual_seed(seed)
    start = torch.rand(5, size, dtype=torch.float64)
    start[0, 0], start[1, 0] = 0.0, 1.0
    direction = unit(torch.randn(5, size, dtype=torch.float64))
    direction[2, 0] = 0.0
    direction = unit(direction)
    length = 1.5 * torch.rand(5, 1, dtype=torch.float64)
    points = ray_point(start, direction, length, UNIT)
    assert bool(((points >= 0.0) & (points <= 1.0)).all())
    lengths = (points - start).norm(dim=1, keepdim=True)
    stopped = (points <= CORNER) | (points >= 1.0 - CORNER) | (direction == 0.0)
    for row in range(5):
        if float((lengths - length)[row].abs()) > ROUNDING:
            assert float(lengths[row]) < float(length[row])
            assert bool(stopped[row].all())


def test_a_ray_without_a_direction_stays() -> None:
    start, nothing = torch.rand(2, 3).double(), torch.zeros(2, 3).double()
    points = ray_point(start, nothing, torch.ones(2, 1).double(), UNIT)
    assert torch.equal(points, start)
    assert torch.equal(unit(nothing), nothing)
    assert linear_distance(torch.ones(2).double(), nothing).tolist() == [[0.0], [0.0]]


def test_the_decay_goes_from_first_to_last() -> None:
    assert cosine_decay(0.3, 0.01, 0.0) == pytest.approx(0.3)
    assert cosine_decay(0.3, 0.01, 1.0) == pytest.approx(0.01)


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(2, 6))
def test_the_multipliers_satisfy_the_optimality_conditions(seed: int, cuts: int, size: int) -> None:
    torch.manual_seed(seed)
    normals = torch.randn(4, cuts, size, dtype=torch.float64)
    inside = torch.randn(4, size, 1, dtype=torch.float64)
    offsets = (normals @ inside).squeeze(2) + 0.1 * torch.rand(4, cuts, dtype=torch.float64)
    multipliers = closest_in_half_spaces(normals, offsets)
    vector = -(multipliers[:, None] @ normals).squeeze(1)
    slack = offsets - (normals @ vector[:, :, None]).squeeze(2)
    assert float(multipliers.min()) >= 0.0
    assert float(slack.min()) >= -1e-6
    assert float((multipliers * slack).abs().max()) <= 1e-6


def test_equal_and_vanishing_half_spaces_are_no_error() -> None:
    normals = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]).double()
    offsets = torch.tensor([[-2.0, -2.0], [-1.0, -1.0]]).double()
    multipliers = closest_in_half_spaces(normals, offsets)
    vector = -(multipliers[:, None] @ normals).squeeze(1)
    assert torch.allclose(vector[0], torch.tensor([-2.0, 0.0]).double(), atol=1e-6)
    assert bool(torch.isfinite(vector).all())
