"""What the checker knows of one layer, and the arithmetic that layers share."""

from collections.abc import Callable
from typing import NamedTuple

from unitmargin.checker.arithmetic import CHUNK, UNIT, UP, Arithmetic
from unitmargin.checker.reading import Array

Shape = tuple[int, ...]
"""Lengths of one sample's activations."""


class Error(NamedTuple):
    """Norm of the error made in one layer: ``slope`` times the norm of its computed input, plus
    ``relative`` times that of its exact output, plus ``constant``."""

    slope: float = 0.0
    constant: float = 0.0
    relative: float = 0.0


class Step(NamedTuple):
    """One layer. ``own`` is the error of ``evaluate``, ``deployed`` that of any execution of the
    profile; numbers met on the way are at most ``growth[0]`` times the input's norm plus
    ``growth[1]``; the output at zero of what a branch may hold has norm ``shift`` at most.
    ``shapes`` follow an input's, the output's last; one that no layer takes is a ValueError."""

    evaluate: Callable[[Array], Array]
    norm: float = 1.0
    own: Error = Error()
    deployed: Error = Error()
    growth: tuple[float, float] = (1.0, 0.0)
    shift: float = 0.0
    shapes: Callable[[Shape], list[Shape]] = lambda shape: [shape]


class Kind(NamedTuple):
    """How a layer is made, and the names of its configuration and tensors in a file."""

    make: Callable[..., Step]
    configuration: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()


def sound(step: Step) -> Step:
    """The layer, unless one of its bounds is negative or NaN."""
    bounds = (step.norm, *step.own, *step.deployed, *step.growth, step.shift)
    if not all(bound >= 0.0 for bound in bounds):
        raise ValueError(f"bounds that are negative or no numbers: {bounds}")
    return step


def divided(shape: Shape, size: int) -> Shape:
    """A map whose sides are divided by ``size``."""
    channels, height, width = as_map(shape)
    if height % size or width % size:
        raise ValueError(f"a map of {height} x {width} in windows of {size}")
    return channels, height // size, width // size


def as_map(shape: Shape) -> tuple[int, int, int]:
    if len(shape) != 3:
        raise ValueError(f"a layer of maps behind activations of shape {shape}")
    return shape[0], shape[1], shape[2]


def product(left: Array, right: Array) -> Array:
    """``left (..., n) @ right (n, m)`` in sums of at most CHUNK products, added in turn."""
    total: Array = left[..., :CHUNK] @ right[..., :CHUNK, :]
    for start in range(CHUNK, left.shape[-1], CHUNK):
        total += left[..., start : start + CHUNK] @ right[..., start : start + CHUNK, :]
    return total


def lost(operations: int, norm: float, profile: Arithmetic) -> float:
    """Norm of what underflow may cost: each operation at most the smallest normal number."""
    return 8.0 * operations * (1.0 + norm) * profile.smallest


def rounded(error: Error, norm: float, bias: float) -> Error:
    """The checker's own, with one more rounding of each output: u (S N + b + e)."""
    slope, constant, _ = error
    unit = UNIT * UP
    return Error(slope + unit * (norm + slope), constant + unit * (bias + constant))
