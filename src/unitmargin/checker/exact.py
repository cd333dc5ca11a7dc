"""Layers that move, compare and negate numbers: exact, and of norm 1."""

import math

import numpy as np

from unitmargin.checker.arithmetic import Arithmetic
from unitmargin.checker.reading import Array
from unitmargin.checker.step import Kind, Shape, Step, as_map, divided


def flatten(_: Arithmetic) -> Step:
    return Step(lambda x: x.reshape(len(x), -1), shapes=lambda shape: [(math.prod(shape),)])


def pixel_unshuffle(_: Arithmetic, factor: int) -> Step:
    def shapes(shape: Shape) -> list[Shape]:
        channels, height, width = divided(shape, factor)
        return [(channels * factor**2, height, width)]

    def evaluate(x: Array) -> Array:
        batch, channels, height, width = x.shape
        shape = (batch, channels, height // factor, factor, width // factor, factor)
        moved = x.reshape(shape).transpose(0, 1, 3, 5, 2, 4)
        return moved.reshape(batch, -1, height // factor, width // factor)

    return Step(evaluate, shapes=shapes)


def widen(_: Arithmetic, factor: int) -> Step:
    def shapes(shape: Shape) -> list[Shape]:
        channels, height, width = as_map(shape)
        return [(channels * factor, height, width)]

    def evaluate(x: Array) -> Array:
        zeros = np.zeros((len(x), (factor - 1) * x.shape[1], *x.shape[2:]))
        return np.concatenate((x, zeros), axis=1)

    return Step(evaluate, shapes=shapes)


def max_pool(_: Arithmetic, size: int) -> Step:
    def shapes(shape: Shape) -> list[Shape]:
        divided(shape, size)
        return [(as_map(shape)[0], size, size)]

    def evaluate(x: Array) -> Array:
        batch, channels, height, width = x.shape
        shape = (batch, channels, size, height // size, size, width // size)
        largest: Array = x.reshape(shape).max((3, 5))
        return largest

    return Step(evaluate, shapes=shapes)


def maxmin(_: Arithmetic) -> Step:
    def evaluate(x: Array) -> Array:
        first, second = np.split(x, 2, axis=1)
        return np.concatenate((np.maximum(first, second), np.minimum(first, second)), axis=1)

    return Step(evaluate, shapes=lambda shape: [_grouped(shape, 2)])


def groupsort(_: Arithmetic, size: int) -> Step:
    def evaluate(x: Array) -> Array:
        groups = x.reshape(len(x), x.shape[1] // size, size, *x.shape[2:])
        return (-np.sort(-groups, axis=2)).reshape(x.shape)

    return Step(evaluate, shapes=lambda shape: [_grouped(shape, size)])


def partial_abs(_: Arithmetic, parts: int) -> Step:
    def evaluate(x: Array) -> Array:
        folded = x.copy()
        first = folded[:, : x.shape[1] // parts]
        np.abs(first, out=first)
        return folded

    return Step(evaluate, shapes=lambda shape: [_grouped(shape, parts)])


def _grouped(shape: Shape, size: int) -> Shape:
    if size < 2 or shape[0] % size:
        raise ValueError(f"{shape[0]} channels in groups of {size}")
    return shape


EXACT_KINDS = {
    "flatten": Kind(flatten),
    "pixel_unshuffle": Kind(pixel_unshuffle, ("factor",)),
    "widen": Kind(widen, ("factor",)),
    "max_pool": Kind(max_pool, ("size",)),
    "abs": Kind(lambda profile: Step(np.abs)),
    "maxmin": Kind(maxmin),
    "oplu": Kind(lambda profile: groupsort(profile, 2)),
    "groupsort": Kind(groupsort, ("size",)),
    "partial_abs": Kind(partial_abs, ("parts",)),
}
