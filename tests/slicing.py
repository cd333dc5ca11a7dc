"""Slices of maps from their definitions, entry by entry, and the matrix of a whole mixing layer."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.mixing import MIXINGS, Mixing
from unitmargin.layers.slices import Arrangement, Folds, Groups, Positions, Shifts, Windows

ARRANGED: dict[str, tuple[Arrangement, int]] = {
    "windows of a square map": (Windows((4, 4), 2, 1), 2),
    "windows of a long map": (Windows((3, 6), 3, 2), 1),
    "windows of one pixel": (Windows((2, 3), 1), 3),
    "one window": (Windows((2, 2), 2), 1),
    "windows of a map of one pixel": (Windows((1, 1), 1), 1),
    "folds": (Folds((4, 6), 2, 1), 3),
    "a fold of one channel": (Folds((3, 3), 3), 1),
    "shifts": (Shifts((3, 4)), 8),
    "shifts of a remainder": (Shifts((2, 5)), 19),
    "shifts of one pixel": (Shifts((1, 1)), 9),
    "positions": (Positions((2, 3)), 4),
    "positions of one channel": (Positions((3, 1)), 1),
    "groups": (Groups((2, 3), 2), 6),
    "groups of one channel": (Groups((3, 2), 1), 4),
    "one group": (Groups((1, 5), 3), 3),
}
"""Arrangements of every kind and channels of maps: square, odd and tiny ones."""


class Slice(NamedTuple):
    """The matrix of a slice, and the flat numbers of the entries that go in and come out."""

    matrix: int
    inside: list[int]
    outside: list[int]


def slices(arrangement: Arrangement, channels: int) -> Iterator[Slice]:
    """All slices of a map, in the order of rows and columns."""
    height, width = arrangement.map_size
    every = range(channels)

    def entry(channel: int, row: int, column: int) -> int:
        return (channel * height + row % height) * width + column % width

    pixels = [(row, column) for row in range(height) for column in range(width)]
    if isinstance(arrangement, Windows):
        size, shift = arrangement.size, arrangement.shift
        rows, columns = height // size, width // size
        for up, left in ((r, c) for r in range(rows) for c in range(columns)):
            window = [(up * size + r, left * size + c) for r in range(size) for c in range(size)]
            inside = [entry(k, r + shift, c + shift) for r, c in window for k in every]
            outside = [entry(k, r, c) for r, c in window for k in every]
            if isinstance(arrangement, Folds):
                outside = [(k * rows + up) * columns + left for k in range(len(inside))]
            yield Slice(0, inside, outside)
    if isinstance(arrangement, Shifts):
        eighth = channels // 8
        moves = [(-1, 0), (1, 0), (0, -1), (0, 1)]
        moves = [move for move in moves for _ in range(eighth)]
        moves += [(0, 0)] * (channels - len(moves))
        for row, column in pixels:
            inside = [entry(k, row + moves[k][0], column + moves[k][1]) for k in every]
            yield Slice(0, inside, [entry(k, row, column) for k in every])
    if isinstance(arrangement, Positions):
        for matrix, (row, column) in enumerate(pixels):
            own = [entry(k, row, column) for k in every]
            yield Slice(matrix, own, own)
    if isinstance(arrangement, Groups):
        for matrix, first in enumerate(range(0, channels, arrangement.size)):
            group = range(first, first + arrangement.size)
            own = [entry(k, row, column) for row, column in pixels for k in group]
            yield Slice(matrix, own, own)


def matrix_of(
    arrangement: Arrangement, channels: int, weight: Tensor, bias: Tensor
) -> tuple[Float[Tensor, "out in"], Float[Tensor, " out"], dict[int, int]]:
    """The layer before its absolute values as one dense matrix and one bias, and the place within
    its slice of every output."""
    entries = channels * arrangement.pixels
    dense = torch.zeros(entries, entries, dtype=weight.dtype)
    shift, places = torch.zeros(entries, dtype=weight.dtype), {}
    for matrix, inside, outside in slices(arrangement, channels):
        for place, output in enumerate(outside):
            shift[output] = bias[matrix, place]
            places[output] = place
            for column, entry in enumerate(inside):
                dense[output, entry] = weight[matrix, place, column]
    return dense, shift, places


def orthogonal(count: int, side: int) -> Float[Tensor, "count side side"]:
    return torch.linalg.qr(torch.randn(count, side, side, dtype=torch.float64)).Q.contiguous()


def mixing(arrangement: Arrangement, channels: int, absolute: int | None = None) -> Mixing:
    """A deployed layer with random orthogonal weights and biases, half of its outputs absolute."""
    count, side = arrangement.stack(channels)
    bias = 0.1 * torch.randn(count, side, dtype=torch.float64)
    absolute = side // 2 if absolute is None else absolute
    kind, configuration = MIXINGS[type(arrangement)], arrangement.configuration()
    return kind(orthogonal(count, side), bias, absolute, **configuration)
