"""Slices of a map that matrices act on: where their entries come from, and where products go."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unitmargin.checker.reading import Array
from unitmargin.checker.step import Shape
from unitmargin.checker.strict import LARGEST_SIDE

Places = NDArray[np.int64]
"""Numbers of entries of a map."""


class Slicing(NamedTuple):
    """So many ``matrices`` act on slices of ``side`` entries of a map. Of the numbers of a map of
    ``shape`` ``taken`` makes those of its slices (matrix, slice, entry); of those of one of shape
    ``leaves``, ``given`` makes the ones that products go to."""

    matrices: int
    side: int
    shape: Shape
    leaves: Shape
    taken: Callable[[Places], Places]
    given: Callable[[Places], Places]

    @property
    def entries(self) -> int:
        return math.prod(self.shape)

    @property
    def served(self) -> int:
        """Slices of a map that share a matrix."""
        return self.entries // (self.matrices * self.side)

    def cut(self, x: Array) -> Array:
        """The slices of all maps, by matrix."""
        taken = self.taken(np.arange(self.entries).reshape(self.shape))
        slices = x.reshape(len(x), self.entries)[:, taken].swapaxes(0, 1)
        return slices.reshape(self.matrices, -1, self.side)

    def joined(self, products: Array, maps: int) -> Array:
        """The maps that products make, which are by matrix."""
        given = self.given(np.arange(self.entries).reshape(self.leaves))
        found = np.empty((maps, self.entries))
        slices = products.reshape(self.matrices, maps, self.served, self.side)
        found[:, given] = slices.swapaxes(0, 1)
        return found.reshape(maps, *self.leaves)

    def shapes(self, met: Shape) -> list[Shape]:
        if met != self.shape:
            raise ValueError(f"slices of {self.shape} behind activations {met}")
        return [self.leaves]


Cut = Callable[..., Slicing]
"""A way to cut a map, of matrices, their side, height and width of the map, and configuration."""


def slicing(cut: Cut, weight: Array, map_size: list[int], configuration: dict[str, int]) -> Slicing:
    """The slices that the matrices of a weight (matrix, row, entry) act on."""
    height, width = map_size
    if weight.ndim != 3 or not weight.size or max(height, width) > LARGEST_SIDE:
        raise ValueError(f"weight {weight.shape} on slices of {height} x {width} pixels")
    count, _, side = weight.shape
    slices = cut(count, side, height, width, **configuration)
    if (slices.matrices, slices.side) != (count, side) or not slices.shape[0]:
        raise ValueError(f"weight {weight.shape} on slices of maps of shape {slices.shape}")
    return slices


def _windows(size: int, numbers: Places) -> Places:
    """All entries of a window are a slice: row, column, channel."""
    channels, height, width = numbers.shape
    apart = numbers.reshape(channels, height // size, size, width // size, size)
    return apart.transpose(1, 3, 2, 4, 0).reshape(1, -1, size**2 * channels)


def _pixels(numbers: Places) -> Places:
    """All channels of a pixel are a slice."""
    return numbers.reshape(len(numbers), -1).T[None]


def window(count: int, side: int, height: int, width: int, size: int, shift: int) -> Slicing:
    if height % size or width % size or shift >= size:
        raise ValueError(f"a map of {height} x {width} in windows of {size}, shifted by {shift}")
    channels = side // size**2

    def taken(numbers: Places) -> Places:
        return _windows(size, np.roll(numbers, (-shift, -shift), (1, 2)))

    shape = (channels, height, width)
    return Slicing(1, size**2 * channels, shape, shape, taken, lambda n: _windows(size, n))


def fold(count: int, side: int, height: int, width: int, size: int, shift: int) -> Slicing:
    """Each window becomes a pixel."""
    windows = window(count, side, height, width, size, shift)
    return windows._replace(leaves=(side, height // size, width // size), given=_pixels)


def shift(count: int, side: int, height: int, width: int) -> Slicing:
    """Eighths of the channels come from the pixel above, below, to the left and to the right."""
    part = side // 8
    if not part:
        raise ValueError(f"eighths of {side} channels")

    def taken(numbers: Places) -> Places:
        moved = numbers.copy()
        for eighth, (by, axis) in enumerate(((1, 1), (-1, 1), (1, 2), (-1, 2))):
            own = slice(eighth * part, (eighth + 1) * part)
            moved[own] = np.roll(numbers[own], by, axis)
        return _pixels(moved)

    shape = (side, height, width)
    return Slicing(1, side, shape, shape, taken, _pixels)


def position(count: int, side: int, height: int, width: int) -> Slicing:
    def own(numbers: Places) -> Places:
        return _pixels(numbers).transpose(1, 0, 2)

    shape = (side, height, width)
    return Slicing(height * width, side, shape, shape, own, own)


def group(count: int, side: int, height: int, width: int, size: int) -> Slicing:
    """Some channels of all pixels are a slice: pixel, channel."""

    def own(numbers: Places) -> Places:
        groups = numbers.reshape(-1, size, height * width).transpose(0, 2, 1)
        return groups.reshape(-1, 1, size * height * width)

    shape = (count * size, height, width)
    return Slicing(count, size * height * width, shape, shape, own, own)


CUTS: dict[str, tuple[Cut, tuple[str, ...]]] = {
    "window": (window, ("size", "shift")),
    "fold": (fold, ("size", "shift")),
    "shift": (shift, ()),
    "position": (position, ()),
    "group": (group, ("size",)),
}
"""Ways to cut a map, and the names of their configuration."""
