"""One function a layer kind: how to evaluate it, its norm, and what rounding does to it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from unitmargin.checker.arithmetic import CHUNK, OWN, UNIT, UP, Arithmetic, gamma, own_length
from unitmargin.checker.bounds import absolute_norm, norms, spectral_norm
from unitmargin.checker.fourier import (
    MATRIX_LIMIT,
    convolve,
    deployed_error,
    frequencies,
    own_error,
)
from unitmargin.checker.reading import Array


class Error(NamedTuple):
    """Norm of the error made in one layer: ``slope`` times the norm of its computed input, plus
    ``relative`` times that of its exact output, plus ``constant``."""

    slope: float = 0.0
    constant: float = 0.0
    relative: float = 0.0


class Step(NamedTuple):
    """One layer. ``own`` is the error of ``evaluate``, ``deployed`` that of any execution of the
    profile; numbers met on the way are at most ``growth[0]`` times the input's norm plus
    ``growth[1]``."""

    evaluate: Callable[[Array], Array]
    norm: float = 1.0
    own: Error = Error()
    deployed: Error = Error()
    growth: tuple[float, float] = (1.0, 0.0)


def product(left: Array, right: Array) -> Array:
    """``left (..., n) @ right (n, m)`` in sums of at most CHUNK products, added in turn."""
    total: Array = left[..., :CHUNK] @ right[..., :CHUNK, :]
    for start in range(CHUNK, left.shape[-1], CHUNK):
        total += left[..., start : start + CHUNK] @ right[..., start : start + CHUNK, :]
    return total


def lost(operations: int, norm: float, profile: Arithmetic) -> float:
    """Norm of what underflow may cost: each operation at most the smallest normal number."""
    return 8.0 * operations * (1.0 + norm) * profile.smallest


def rounded(error: Error, norm: float, bias: float, unit: float) -> Error:
    """The same with one more rounding of each output: unit (S N + b + e)."""
    slope, constant, _ = error
    return Error(slope + unit * (norm + slope), constant + unit * (bias + constant))


def dense(profile: Arithmetic, weight: Array, bias: Array) -> Step:
    """A hidden layer W x + b: (C6)."""
    if weight.ndim != 2 or bias.shape != weight.shape[:1]:
        raise ValueError(f"weight {weight.shape} and bias {bias.shape} of a dense layer")
    absolute, size = absolute_norm(weight[None]), float(norms(bias[None])[0])
    norm, inputs = spectral_norm(weight[None]), weight.shape[1]

    def error(roundings: int, arithmetic: Arithmetic) -> Error:
        share = gamma(roundings + 1, arithmetic.unit) * UP
        return Error(share * absolute, share * size + lost(weight.size, norm, arithmetic))

    wide = profile.chunk is not None
    inner = profile.inside(wide)
    deployed = error(inner.length(inputs), inner)
    if wide:
        deployed = rounded(deployed, norm, size, profile.unit * UP)
    return Step(
        lambda x: product(x, weight.T) + bias,
        norm,
        error(own_length(inputs), OWN),
        deployed,
        (absolute, size),
    )


def circular_convolution(
    profile: Arithmetic, map_size: list[int], real: Array, pairs: Array, bias: Array
) -> Step:
    """Circular convolution stored by frequency: (C7)."""
    height, width = map_size
    own, other = frequencies(height, width)
    outputs, inputs = real.shape[1:]
    if (real.shape, pairs.shape, bias.shape) != (
        (len(own), outputs, inputs),
        (len(other), 2, outputs, inputs),
        (outputs,),
    ):
        raise ValueError(f"blocks {real.shape}, {pairs.shape} of a {height} x {width} convolution")
    top = np.concatenate((pairs[:, 0], -pairs[:, 1]), axis=2)
    both = np.concatenate((top, np.concatenate((pairs[:, 1], pairs[:, 0]), axis=2)), axis=1)
    norm = max(spectral_norm(real), spectral_norm(both))
    absolute = max(absolute_norm(real), absolute_norm(both))
    pixels = height * width
    size = float(norms(bias[None])[0]) * pixels**0.5 * UP

    def error(turn: float, roundings: int, arithmetic: Arithmetic) -> Error:
        slope = turn * norm + gamma(roundings + 1, arithmetic.unit) * (1.0 + turn) * absolute
        constant = gamma(roundings + 3, arithmetic.unit) * size
        slope, constant = slope + turn * (norm + slope), constant + turn * (size + constant)
        operations = pixels * (inputs + pixels) * (outputs + pixels)
        return Error(slope * UP, constant * UP + lost(operations, norm, arithmetic))

    small = pixels <= MATRIX_LIMIT and profile.wide_channels is not None
    wide = small and inputs <= (profile.wide_channels or 0)
    inner = profile.inside(wide)
    deployed = error(deployed_error(height, width, inner.unit), inner.length(inputs), inner)
    if wide:
        deployed = rounded(deployed, norm, size, profile.unit * UP)
    mine = error(own_error(height, width), own_length(inputs), OWN)
    return Step(
        lambda x: _on_map(x, height, width, real, pairs) + bias[:, None, None],
        norm,
        rounded(mine, norm, size, UNIT * UP),
        deployed,
        (2.0 * pixels * max(absolute, 1.0), 2.0 * pixels * size),
    )


def _on_map(x: Array, height: int, width: int, real: Array, pairs: Array) -> Array:
    if x.shape[2:] != (height, width):
        raise ValueError(f"a {height} x {width} convolution of a map of shape {x.shape[2:]}")
    return convolve(x, real, pairs, product)


def normalize(profile: Arithmetic, mean: Array, std: Array) -> Step:
    """(x - mean) / std, channel by channel: two roundings of each entry (C8)."""
    if mean.ndim != 1 or mean.shape != std.shape or not np.all(std > 0):
        raise ValueError(f"mean {mean.shape} and std {std.shape} of an input normalisation")

    def evaluate(x: Array) -> Array:
        if x.shape[1] != len(mean):
            raise ValueError(f"{len(mean)} means for {x.shape[1]} channels")
        shape = (-1, *(1,) * (x.ndim - 2))
        shifted: Array = (x - mean.reshape(shape)) / std.reshape(shape)
        return shifted

    norm = UP / float(std.min())
    return Step(
        evaluate,
        norm,
        Error(0.0, lost(2**28, norm, OWN), gamma(3)),
        Error(0.0, lost(2**28, norm, profile), gamma(3, profile.unit)),
        (norm, float(np.abs(mean).max()) * (1.0 + norm) * 2.0**14),
    )


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


KINDS: dict[str, Callable[..., Step]] = {
    "dense": dense,
    "circular_convolution": circular_convolution,
    "normalize": normalize,
    "flatten": flatten,
    "pixel_unshuffle": pixel_unshuffle,
    "max_pool": max_pool,
    "abs": absolute,
    "maxmin": maxmin,
    "oplu": oplu,
    "groupsort": groupsort,
}
"""Each takes the profile, then the configuration and the tensors of the file by name. Moves,
comparisons and negations are exact and have norm 1."""
