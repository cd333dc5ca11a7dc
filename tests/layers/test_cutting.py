"""Cutting is a permutation: entries stay what they are, and gradients come back to their places."""

import pytest
import torch

from unitmargin.layers.cutting import cut_maps
from unitmargin.layers.slices import Arrangement, Groups, Positions, Shifts, Windows

SIZE = (4, 4)

ARRANGED = [Windows(SIZE, 2, 1), Windows(SIZE, 1), Shifts(SIZE), Positions(SIZE), Groups(SIZE, 4)]

every = pytest.mark.parametrize("arrangement", ARRANGED, ids=str)


def numbered(batch: int) -> torch.Tensor:
    return torch.arange(batch * 8 * 16, dtype=torch.float64).view(batch, 8, *SIZE)


@every
def test_slices_are_those_of_the_arrangement_however_maps_lie(arrangement: Arrangement) -> None:
    x = numbered(3)
    last = x.contiguous(memory_format=torch.channels_last)
    slices = cut_maps(x, arrangement)
    assert torch.equal(slices, arrangement.cut(x))
    for found in (cut_maps(last, arrangement), cut_maps(last.requires_grad_(), arrangement)):
        assert torch.equal(found, slices)
        assert found.stride() == slices.stride()
    with torch.no_grad():
        assert torch.equal(cut_maps(last, arrangement), slices)


@every
def test_a_gradient_comes_back_to_the_place_of_its_entry(arrangement: Arrangement) -> None:
    x = numbered(2).requires_grad_()
    slices = cut_maps(x, arrangement)
    (gradient,) = torch.autograd.grad((slices * slices.detach()).sum(), x)
    assert torch.equal(gradient, x.detach())


def test_gradients_have_gradients() -> None:
    x = torch.randn(1, 8, *SIZE, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda maps: cut_maps(maps, ARRANGED[0]) ** 3, (x,))
