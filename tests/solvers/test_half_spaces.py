"""The closest point of a few half-spaces, against closed forms."""

import pytest
import torch

from unitmargin.solvers import minimal_perturbation
from unitmargin.solvers.half_spaces import closest_in_half_spaces


@pytest.mark.parametrize("length", [1e-150, 1e-6, 1e-4, 1.0, 1e6, 1e150])
def test_lengths_of_normals_change_nothing(length: float) -> None:
    normals = torch.tensor([[[1.0, 0.0], [0.0, length]]], dtype=torch.float64)
    offsets = torch.tensor([[-3.0, -4.0 * length]], dtype=torch.float64)
    multipliers = closest_in_half_spaces(normals, offsets)
    found = -(multipliers[:, :, None] * normals).sum(1)
    assert torch.allclose(found, torch.tensor([[-3.0, -4.0]], dtype=torch.float64), rtol=1e-9)


@pytest.mark.parametrize("offset", [1.0, 0.0, -1.0])
def test_a_normal_of_zero_is_left_out(offset: float) -> None:
    normals = torch.tensor([[[0.0, 0.0], [0.0, 2.0]]], dtype=torch.float64)
    offsets = torch.tensor([[offset, -2.0]], dtype=torch.float64)
    multipliers = closest_in_half_spaces(normals, offsets)
    assert torch.allclose(multipliers, torch.tensor([[0.0, 0.5]], dtype=torch.float64), atol=1e-9)


class Corner(torch.nn.Module):
    """max(x1, x2 / 10000) against 0: the boundary from (3, 4) is the origin, at 5."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        margin = torch.maximum(x[:, 0], 1e-4 * x[:, 1])
        return torch.stack([margin, torch.zeros_like(margin)], 1)


def test_a_corner_of_unequal_slopes_is_found() -> None:
    x = torch.tensor([[3.0, 4.0, *[0.0] * 10]], dtype=torch.float64)
    found = minimal_perturbation(Corner(), x, torch.tensor([0]), "sphere_tracing", steps=30)
    assert float(found.distance) == pytest.approx(5.0, rel=1e-4)
