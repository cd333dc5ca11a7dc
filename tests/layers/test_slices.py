"""Arrangements of slices: permutations of the entries of a map, as their definitions say."""

import copy

import pytest
import torch
from slicing import ARRANGED, slices

from unitmargin.layers.slices import (
    ARRANGEMENTS,
    Arrangement,
    Folds,
    Groups,
    Shifts,
    Windows,
)

BATCH = 3

every = pytest.mark.parametrize(("arrangement", "channels"), ARRANGED.values(), ids=ARRANGED)


def numbered(arrangement: Arrangement, channels: int, batch: int = BATCH) -> torch.Tensor:
    """Maps whose entries all differ."""
    count = channels * arrangement.pixels
    return torch.arange(float(batch * count)).view(batch, channels, *arrangement.map_size)


def test_every_arrangement_is_met() -> None:
    assert {type(one) for one, _ in ARRANGED.values()} == set(ARRANGEMENTS.values())


@every
def test_slices_are_those_of_the_definition(arrangement: Arrangement, channels: int) -> None:
    x = numbered(arrangement, channels)
    stack, side = arrangement.stack(channels)
    cut = arrangement.cut(x)
    assert cut.shape == (stack, BATCH * arrangement.slices(channels) // stack, side)
    placed = arrangement.place(cut, channels).flatten(1)
    met = [0] * stack
    for matrix, inside, outside in slices(arrangement, channels):
        served = arrangement.slices(channels) // stack
        for sample in range(BATCH):
            row = cut[matrix, sample * served + met[matrix]]
            assert torch.equal(row, x[sample].flatten()[inside])
            assert torch.equal(placed[sample, outside], row)
        met[matrix] += 1
    assert met == [arrangement.slices(channels) // stack] * stack


def test_a_batch_of_nothing_needs_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a file evaluates one, which may name a large map in few bytes."""

    def refuse(*given: object) -> None:
        raise AssertionError("an order was made")

    monkeypatch.setattr("unitmargin.layers.slices._kept_orders", refuse)
    for kind in (Windows, Folds):
        arrangement = kind((960, 960), 6)
        x = numbered(arrangement, 1, 0)
        assert arrangement.uncut(arrangement.cut(x), 1).shape == x.shape
        arrangement.unplace(arrangement.place(arrangement.cut(x), 1))


@every
@pytest.mark.parametrize("batch", [0, 1, BATCH])
def test_cutting_and_placing_are_permutations(
    arrangement: Arrangement, channels: int, batch: int
) -> None:
    x = numbered(arrangement, channels, batch)
    cut = arrangement.cut(x)
    assert torch.equal(cut.flatten().sort().values, x.flatten())
    assert torch.equal(arrangement.uncut(cut, channels), x)
    placed = arrangement.place(cut, channels)
    assert placed.numel() == x.numel()
    assert torch.equal(arrangement.unplace(placed), cut)


@every
def test_inverses_are_transposes(arrangement: Arrangement, channels: int) -> None:
    """So that a gradient takes the way back."""
    x = numbered(arrangement, channels).requires_grad_(True)
    gradient = torch.randn_like(arrangement.cut(x))
    (back,) = torch.autograd.grad(arrangement.cut(x), x, gradient)
    assert torch.equal(back, arrangement.uncut(gradient, channels))
    placed = arrangement.place(gradient.requires_grad_(True), channels)
    (back,) = torch.autograd.grad(placed, gradient, placed.detach())
    assert torch.equal(back, arrangement.unplace(placed))


@every
def test_channels_follow_from_the_stack(arrangement: Arrangement, channels: int) -> None:
    assert arrangement.channels(*arrangement.stack(channels)) == channels
    count, side = arrangement.stack(channels)
    assert arrangement.slices(channels) * side == channels * arrangement.pixels
    assert arrangement.slices(channels) % count == 0


@every
def test_an_arrangement_is_a_value(arrangement: Arrangement, channels: int) -> None:
    configuration = arrangement.configuration()
    again = type(arrangement)(**configuration | {"map_size": tuple(configuration["map_size"])})
    assert again == arrangement == copy.deepcopy(arrangement)
    assert hash(again) == hash(arrangement)
    assert all(type(value) in (int, list) for value in arrangement.configuration().values())


def test_a_fold_is_a_pixel_unshuffle_of_another_order() -> None:
    x = torch.randn(2, 3, 4, 6)
    fold = Folds((4, 6), 2)
    folded = fold.place(fold.cut(x), 3)
    unshuffled = torch.nn.functional.pixel_unshuffle(x, 2)  # channel, row, column
    order = torch.arange(12).view(3, 2, 2).permute(1, 2, 0).flatten()
    assert torch.equal(folded, unshuffled[:, order])


def test_the_orders_of_windows_do_not_belong_to_the_mode_they_were_made_in() -> None:
    """They are kept between calls, and autograd may have to save them."""
    windows = Windows((2, 14), 2, 1)  # met nowhere else
    x = torch.randn(1, 1, 2, 14)
    with torch.inference_mode():
        expected = windows.cut(x)
    probe = x.clone().requires_grad_(True)
    windows.cut(probe).sum().backward()
    assert torch.equal(windows.cut(x), expected)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Windows((4, 3), 2), "a multiple of 2 on both sides, got 4 x 3"),
        (lambda: Folds((6, 4), 3), "a multiple of 3 on both sides, got 6 x 4"),
        (lambda: Windows((4, 4), 2, 2), "shift must be below the size 2 of a window, got 2"),
        (lambda: Windows((4, 4), 2, -1), "shift must be >= 0, got -1"),
        (lambda: Windows((4, 4), 0), "size must be >= 1, got 0"),
        (lambda: Windows((4, 0)), "map_size must be >= 1, got 0"),
        (lambda: Shifts((4, 4)).stack(7), "at least 8 channels, got 7"),
        (lambda: Groups((4, 4), 3).stack(8), "groups of 3 in 8 channels"),
        (lambda: Groups((4, 4), 0), "size must be >= 1, got 0"),
    ],
)
def test_what_cannot_be_cut_is_refused(build: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()  # type: ignore[operator]
