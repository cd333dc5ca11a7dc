"""One function a layer kind: how to evaluate it, its norm, and what rounding does to it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from unitmargin.checker.arithmetic import OWN, UNIT, UP, Arithmetic, gamma, own_length
from unitmargin.checker.bounds import absolute_norm, norms, spectral_norm
from unitmargin.checker.exact import EXACT_KINDS
from unitmargin.checker.fourier import (
    MATRIX_LIMIT,
    convolve,
    deployed_error,
    frequencies,
    own_error,
)
from unitmargin.checker.reading import Array
from unitmargin.checker.step import Error, Step, lost, product, rounded, sound


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
        lambda x: _on_vectors(x, weight) + bias,
        norm,
        error(own_length(inputs), OWN),
        deployed,
        (absolute, size),
        size,
    )


def _on_vectors(x: Array, weight: Array) -> Array:
    if x.ndim != 2:
        raise ValueError(f"a dense layer behind activations of shape {x.shape[1:]}")
    return product(x, weight.T)


def circular_convolution(
    profile: Arithmetic, map_size: list[int], real: Array, pairs: Array, bias: Array
) -> Step:
    """Circular convolution stored by frequency: (C7)."""
    height, width = map_size
    outputs, inputs = real.shape[1:]
    _check_blocks(height, width, real, pairs, bias)
    top = np.concatenate((pairs[:, 0], -pairs[:, 1]), axis=2)
    both = np.concatenate((top, np.concatenate((pairs[:, 1], pairs[:, 0]), axis=2)), axis=1)
    norm = max(spectral_norm(real), spectral_norm(both))
    absolute = max(absolute_norm(real), absolute_norm(both))
    pixels = height * width
    size = float(norms(bias[None])[0]) * pixels**0.5 * UP
    inside = (4.0 * pixels) ** 2.5  # the root of the pixels, or convolutions of prime lengths

    def error(turn: float, roundings: int, arithmetic: Arithmetic) -> Error:
        slope = turn * norm + gamma(roundings + 1, arithmetic.unit) * (1.0 + turn) * absolute
        constant = gamma(roundings + 3, arithmetic.unit) * size
        slope, constant = slope + turn * (norm + slope), constant + turn * (size + constant)
        operations = 16 * pixels * (inputs + pixels) * (outputs + pixels)
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
        (inside * max(absolute, 1.0), inside * size),
        size,
    )


def _check_blocks(height: int, width: int, real: Array, pairs: Array, bias: Array) -> None:
    own, other = frequencies(height, width)
    outputs, inputs = real.shape[1:]
    if (real.shape, pairs.shape, bias.shape) != (
        (len(own), outputs, inputs),
        (len(other), 2, outputs, inputs),
        (outputs,),
    ):
        raise ValueError(f"blocks {real.shape}, {pairs.shape} of a {height} x {width} convolution")


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


def scaled_average_pool(profile: Arithmetic, size: int) -> Step:
    """Sums of windows over their side (C13): n - 1 additions, a division or a product with a
    rounded reciprocal, and a row of n equal entries 1 / root(n) has norm 1."""

    def evaluate(x: Array) -> Array:
        batch, channels, height, width = x.shape
        windows = x.reshape(batch, channels, height // size, size, width // size, size)
        averaged: Array = windows.sum((3, 5)) / size
        return averaged

    own, deployed = (
        Error(gamma(size**2 + 1, arithmetic.unit) * UP, lost(2**28 * size**2, 1.0, arithmetic))
        for arithmetic in (OWN, profile)
    )
    return Step(evaluate, 1.0, own, deployed, (float(size), 0.0))


def convex_combination(
    profile: Arithmetic, branch: list[dict[str, Any]], share: Array, **tensors: Array
) -> Step:
    """t x + (1 - t) B(x): (C14). Each path meets at most three roundings, 1 - t among them."""
    if share.shape or not 0.0 <= share <= 1.0:
        raise ValueError(f"the share of a convex combination is {share}")
    steps = _branch(profile, branch, tensors)
    kept, rest = float(share), (1.0 - float(share)) * UP

    def evaluate(x: Array) -> Array:
        output = x
        for step in steps:
            output = step.evaluate(output)
        if output.shape != x.shape:
            raise ValueError(f"a branch turns shape {x.shape} into {output.shape}")
        joined: Array = kept * x + (1.0 - kept) * output
        return joined

    own = in_a_row(steps, [step.own for step in steps])
    deployed = in_a_row(steps, [step.deployed for step in steps])

    def error(row: Row, arithmetic: Arithmetic) -> Error:
        both = gamma(3, arithmetic.unit)
        slope = rest * row.slope + both * (kept + rest * (row.norm + row.slope))
        constant = rest * row.constant + both * rest * (row.shift + row.constant)
        return Error(slope * UP, constant * UP + lost(2**28, 1.0 + row.norm, arithmetic))

    return Step(
        evaluate,
        (kept + rest * own.norm) * UP,
        error(own, OWN),
        error(deployed, profile),
        deployed.growth,
        rest * own.shift * UP,
    )


def _branch(
    profile: Arithmetic, branch: list[dict[str, Any]], tensors: dict[str, Array]
) -> list[Step]:
    """The layers of a branch, whose tensors are named ``branch.INDEX.NAME``."""
    steps = []
    for index, layer in enumerate(branch):
        kind, prefix = layer["kind"], f"branch.{index}."
        if kind not in KINDS or kind == "normalize":
            raise ValueError(f"a branch cannot hold a layer {kind!r}")
        own = {name: tensors.pop(name) for name in list(tensors) if name.startswith(prefix)}
        state = {name.removeprefix(prefix): tensor for name, tensor in own.items()}
        steps.append(sound(KINDS[kind](profile, **layer["configuration"], **state)))
    if tensors:
        raise ValueError(f"surplus tensors {sorted(tensors)} of a convex combination")
    return steps


class Row(NamedTuple):
    """Layers in a row: ``norm``, ``shift`` and ``growth`` as those of one layer; their error is
    ``slope`` times the norm of the first input plus ``constant``."""

    norm: float = 1.0
    shift: float = 0.0
    slope: float = 0.0
    constant: float = 0.0
    growth: tuple[float, float] = (1.0, 0.0)


def in_a_row(steps: list[Step], errors: list[Error]) -> Row:
    """Earlier errors pass through later layers; growth adds up, where the largest would do."""
    row = Row()
    for step, error in zip(steps, errors, strict=True):
        norm, shift, slope, constant, (most, offset) = row
        steep, flat = norm + slope, shift + constant  # norm of the computed input
        row = Row(
            norm * step.norm * UP,
            (step.norm * shift + step.shift) * UP,
            (step.norm * slope + error.slope * steep) * UP,
            (step.norm * constant + error.slope * flat + error.constant) * UP,
            (most + step.growth[0] * steep, offset + step.growth[0] * flat + step.growth[1]),
        )
    return row


KINDS: dict[str, Callable[..., Step]] = {
    "dense": dense,
    "circular_convolution": circular_convolution,
    "normalize": normalize,
    "scaled_average_pool": scaled_average_pool,
    "convex_combination": convex_combination,
    **EXACT_KINDS,
}
"""Each takes the profile, then the configuration and the tensors of the file by name."""
