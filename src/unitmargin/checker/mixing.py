"""Matrices on slices of a map: where the entries of slices come from, and where products go."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unitmargin.checker.arithmetic import OWN, UP, Arithmetic, gamma, own_length
from unitmargin.checker.bounds import absolute_norm, norms, spectral_norm
from unitmargin.checker.reading import Array
from unitmargin.checker.step import Error, Kind, Shape, Step, lost, product
from unitmargin.checker.strict import LARGEST_SIDE

Places = NDArray[np.int64]
"""Numbers of entries of a map."""


class Slicing(NamedTuple):
    """So many ``matrices`` of ``side`` rows belong to maps of ``channels``.

    Of the numbers of such a map's entries ``taken`` makes those of its slices (matrix, slice,
    entry); of those of a map of shape ``leaves``, ``given`` makes the ones that products go to.
    """

    matrices: int
    side: int
    channels: int
    leaves: Shape
    taken: Callable[[Places], Places]
    given: Callable[[Places], Places]


def _windows(size: int, numbers: Places) -> Places:
    """All entries of a window are a slice: row, column, channel."""
    channels, height, width = numbers.shape
    apart = numbers.reshape(channels, height // size, size, width // size, size)
    return apart.transpose(1, 3, 2, 4, 0).reshape(1, -1, size**2 * channels)


def _pixels(numbers: Places) -> Places:
    """All channels of a pixel are a slice."""
    return numbers.reshape(len(numbers), -1).T[None]


def _rolled_windows(height: int, width: int, side: int, size: int, shift: int) -> Slicing:
    if height % size or width % size or shift >= size:
        raise ValueError(f"a map of {height} x {width} in windows of {size}, shifted by {shift}")
    channels = side // size**2

    def taken(numbers: Places) -> Places:
        return _windows(size, np.roll(numbers, (-shift, -shift), (1, 2)))

    shape = (channels, height, width)
    return Slicing(1, size**2 * channels, channels, shape, taken, lambda n: _windows(size, n))


def window(count: int, side: int, height: int, width: int, size: int, shift: int) -> Slicing:
    return _rolled_windows(height, width, side, size, shift)


def fold(count: int, side: int, height: int, width: int, size: int, shift: int) -> Slicing:
    """Each window becomes a pixel."""
    leaves = (side, height // size, width // size)
    return _rolled_windows(height, width, side, size, shift)._replace(leaves=leaves, given=_pixels)


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

    return Slicing(1, side, side, (side, height, width), taken, _pixels)


def position(count: int, side: int, height: int, width: int) -> Slicing:
    def own(numbers: Places) -> Places:
        return _pixels(numbers).transpose(1, 0, 2)

    return Slicing(height * width, side, side, (side, height, width), own, own)


def group(count: int, side: int, height: int, width: int, size: int) -> Slicing:
    """Some channels of all pixels are a slice: pixel, channel."""

    def own(numbers: Places) -> Places:
        groups = numbers.reshape(-1, size, height * width).transpose(0, 2, 1)
        return groups.reshape(-1, 1, size * height * width)

    channels = count * size
    return Slicing(count, size * height * width, channels, (channels, height, width), own, own)


def mixing(
    slicing: Callable[..., Slicing],
    profile: Arithmetic,
    absolute: int,
    map_size: list[int],
    weight: Array,
    bias: Array,
    **configuration: int,
) -> Step:
    """W x + b on every slice, absolute values of its first outputs: (C15)."""
    height, width = map_size
    if weight.ndim != 3 or not weight.size or max(height, width) > LARGEST_SIDE:
        raise ValueError(f"weight {weight.shape} on slices of {height} x {width} pixels")
    count, side = weight.shape[:2]
    slices = slicing(count, side, height, width, **configuration)
    expected = (slices.matrices, slices.side, slices.side), (slices.matrices, slices.side)
    if (weight.shape, bias.shape) != expected or not slices.channels or absolute > side:
        raise ValueError(f"weight {weight.shape}, bias {bias.shape} and {absolute} absolute values")
    shape = slices.channels, height, width
    entries = slices.channels * height * width
    norm, modulus = spectral_norm(weight), absolute_norm(weight)
    served = entries // (count * side)
    size = float(norms(bias.reshape(1, -1))[0]) * served**0.5 * UP

    def error(roundings: int, arithmetic: Arithmetic) -> Error:
        share = gamma(roundings + 1, arithmetic.unit) * UP
        return Error(share * modulus, share * size + lost((side + 4) * entries, norm, arithmetic))

    def evaluate(x: Array) -> Array:
        numbers = np.arange(entries)
        taken, given = slices.taken(numbers.reshape(shape)), numbers.reshape(slices.leaves)
        rows = x.reshape(len(x), entries)[:, taken].swapaxes(0, 1).reshape(count, -1, side)
        mixed = product(rows, weight.transpose(0, 2, 1)) + bias[:, None, :]
        mixed[..., :absolute] = np.abs(mixed[..., :absolute])
        output = np.empty((len(x), entries))
        output[:, slices.given(given)] = mixed.reshape(count, len(x), served, side).swapaxes(0, 1)
        return output.reshape(len(x), *slices.leaves)

    def shapes(met: Shape) -> list[Shape]:
        if met != shape:
            raise ValueError(f"slices of {shape} behind activations {met}")
        return [slices.leaves]

    own, deployed = error(own_length(side), OWN), error(side, profile)
    return Step(evaluate, norm, own, deployed, (modulus, size), size, shapes)


def _kind(slicing: Callable[..., Slicing], *own: str) -> Kind:
    def make(profile: Arithmetic, **stored: object) -> Step:
        return mixing(slicing, profile, **stored)  # type: ignore[arg-type]

    return Kind(make, ("absolute", "map_size", *own), ("weight", "bias"))


MIXING_KINDS = {
    "window_mixing": _kind(window, "size", "shift"),
    "fold_mixing": _kind(fold, "size", "shift"),
    "shift_mixing": _kind(shift),
    "position_mixing": _kind(position),
    "group_mixing": _kind(group, "size"),
}
"""Layers of matrices on slices."""
