"""Slices of a map less twice the positive parts of some of their coordinates."""

from collections.abc import Callable

import numpy as np

from unitmargin.checker.arithmetic import OWN, UP, Arithmetic, gamma, own_length
from unitmargin.checker.bounds import absolute_norm, norms, spectral_norm
from unitmargin.checker.mixing import Slicing, fold, group, position, shift, window
from unitmargin.checker.reading import Array
from unitmargin.checker.step import Error, Kind, Shape, Step, lost, product, rounded
from unitmargin.checker.strict import LARGEST_SIDE


def reflection(
    slicing: Callable[..., Slicing],
    profile: Arithmetic,
    map_size: list[int],
    weight: Array,
    bias: Array,
    **configuration: int,
) -> Step:
    """x - 2 W^T max(W x + b, 0) on every slice: (C17).

    Whichever coordinates are positive, the Jacobian is I - 2 V^T V with some rows V of W: it is
    symmetric with eigenvalues from 1 - 2 |W|^2 to 1.
    """
    height, width = map_size
    if weight.ndim != 3 or not weight.size or max(height, width) > LARGEST_SIDE:
        raise ValueError(f"weight {weight.shape} on slices of {height} x {width} pixels")
    count, rows, side = weight.shape
    slices = slicing(count, side, height, width, **configuration)
    fit = (count, side, bias.shape) == (slices.matrices, slices.side, (count, rows))
    if not fit or not slices.channels or rows > side:
        raise ValueError(f"weight {weight.shape} and bias {bias.shape} of a reflection")
    shape = slices.channels, height, width
    entries = slices.channels * height * width
    served = entries // (count * side)
    inner, modulus = spectral_norm(weight), absolute_norm(weight)
    size = float(norms(bias.reshape(1, -1))[0]) * served**0.5 * UP
    norm = max(1.0, 2.0 * inner**2 * UP - 1.0) * UP
    output = 2.0 * inner * size * UP

    def error(first: int, second: int, kept: float, arithmetic: Arithmetic) -> Error:
        """Of roundings of a coordinate and of what is taken away, its input ``kept`` in the sum."""
        share, both = gamma(first + 1, arithmetic.unit), 2.0 * gamma(second, arithmetic.unit)
        steep = share * modulus
        flat = share * size + lost((side + 4) * entries, inner, arithmetic)
        slope = 2.0 * inner * steep + both * (0.5 * kept + modulus * (inner + steep))
        constant = 2.0 * inner * flat + both * modulus * (size + flat)
        return Error(slope * UP, constant * UP + lost(2 * (rows + 4) * entries, inner, arithmetic))

    def evaluate(x: Array) -> Array:
        numbers = np.arange(entries)
        taken, given = slices.taken(numbers.reshape(shape)), numbers.reshape(slices.leaves)
        mine = x.reshape(len(x), entries)[:, taken].swapaxes(0, 1).reshape(count, -1, side)
        positive = np.maximum(product(mine, weight.transpose(0, 2, 1)) + bias[:, None, :], 0.0)
        turned = mine - 2.0 * product(positive, weight)
        placed = np.empty((len(x), entries))
        placed[:, slices.given(given)] = turned.reshape(count, len(x), served, side).swapaxes(0, 1)
        return placed.reshape(len(x), *slices.leaves)

    def shapes(met: Shape) -> list[Shape]:
        if met != shape:
            raise ValueError(f"slices of {shape} behind activations {met}")
        return [slices.leaves]

    own = error(own_length(side), own_length(rows), 0.0, OWN)
    deployed = error(side, rows + 1, 1.0, profile)
    double = 2.0 * max(modulus, 1.0)
    growth = (1.0 + modulus + double * (inner + modulus), size + 2.0 * double * size)
    return Step(evaluate, norm, rounded(own, norm, output), deployed, growth, output, shapes)


def _kind(slicing: Callable[..., Slicing], *own: str) -> Kind:
    def make(profile: Arithmetic, **stored: object) -> Step:
        return reflection(slicing, profile, **stored)  # type: ignore[arg-type]

    return Kind(make, ("map_size", *own), ("weight", "bias"))


REFLECTION_KINDS = {
    "window_reflection": _kind(window, "size", "shift"),
    "fold_reflection": _kind(fold, "size", "shift"),
    "shift_reflection": _kind(shift),
    "position_reflection": _kind(position),
    "group_reflection": _kind(group, "size"),
}
"""Residuals on slices."""
