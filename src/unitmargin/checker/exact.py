"""Layers that move, compare and negate numbers: exact, and of norm 1."""

from collections.abc import Callable

import numpy as np

from unitmargin.checker.arithmetic import Arithmetic
from unitmargin.checker.reading import Array
from unitmargin.checker.step import Step


def flatten(_: Arithmetic) -> Step:
    return Step(lambda x: x.reshape(len(x), -1))


def pixel_unshuffle(_: Arithmetic, factor: int) -> Step:
    def evaluate(x: Array) -> Array:
        batch, channels, height, width = x.shape
        shape = (batch, channels, height // factor, factor, width // factor, factor)
        moved = x.reshape(shape).transpose(0, 1, 3, 5, 2, 4)
        return moved.reshape(batch, -1, height // factor, width // factor)

    return Step(evaluate)


def max_pool(_: Arithmetic, size: int) -> Step:
    def evaluate(x: Array) -> Array:
        batch, channels, height, width = x.shape
        shape = (batch, channels, size, height // size, size, width // size)
        largest: Array = x.reshape(shape).max((3, 5))
        return largest

    return Step(evaluate)


def absolute(_: Arithmetic) -> Step:
    return Step(np.abs)


def maxmin(_: Arithmetic) -> Step:
    def evaluate(x: Array) -> Array:
        first, second = np.split(x, 2, axis=1)
        return np.concatenate((np.maximum(first, second), np.minimum(first, second)), axis=1)

    return Step(evaluate)


def groupsort(_: Arithmetic, size: int) -> Step:
    def evaluate(x: Array) -> Array:
        groups = x.reshape(len(x), x.shape[1] // size, size, *x.shape[2:])
        return (-np.sort(-groups, axis=2)).reshape(x.shape)

    return Step(evaluate)


def oplu(profile: Arithmetic) -> Step:
    return groupsort(profile, 2)


EXACT_KINDS: dict[str, Callable[..., Step]] = {
    "flatten": flatten,
    "pixel_unshuffle": pixel_unshuffle,
    "max_pool": max_pool,
    "abs": absolute,
    "maxmin": maxmin,
    "oplu": oplu,
    "groupsort": groupsort,
}
"""Each takes the profile, and the configuration of the file by name."""
