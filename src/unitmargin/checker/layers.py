"""One function a layer kind: how to evaluate it, its norm, and what rounding does to it."""

from typing import Any, NamedTuple

import numpy as np

from unitmargin.checker.arithmetic import OWN, UP, Arithmetic, gamma, own_length
from unitmargin.checker.bounds import absolute_norm, norms, spectral_norm
from unitmargin.checker.exact import EXACT_KINDS
from unitmargin.checker.fourier import (
    convolution,
    counts,
    deployed_error,
    own_error,
)
from unitmargin.checker.l2_pool import l2_pool
from unitmargin.checker.mixing import MIXING_KINDS
from unitmargin.checker.reading import Array, listed, specified
from unitmargin.checker.reflection import REFLECTION_KINDS
from unitmargin.checker.step import (
    Error,
    Kind,
    Shape,
    Step,
    divided,
    lost,
    product,
    rounded,
    sound,
)
from unitmargin.checker.strict import DEEPEST_BRANCH, LARGEST_SIDE, MOST_LAYERS, may_be


def dense(profile: Arithmetic, weight: Array, bias: Array) -> Step:
    """A hidden layer W x + b: (C6)."""
    if weight.ndim != 2 or bias.shape != weight.shape[:1] or not weight.size:
        raise ValueError(f"weight {weight.shape} and bias {bias.shape} of a dense layer")
    absolute, size = absolute_norm(weight[None]), float(norms(bias[None])[0])
    norm, inputs = spectral_norm(weight[None]), weight.shape[1]

    def error(roundings: int, arithmetic: Arithmetic) -> Error:
        share = gamma(roundings + 1, arithmetic.unit) * UP
        return Error(share * absolute, share * size + lost(weight.size, norm, arithmetic))

    def shapes(shape: Shape) -> list[Shape]:
        if shape != (inputs,):
            raise ValueError(f"a dense layer of {inputs} inputs behind activations {shape}")
        return [(len(weight),)]

    return Step(
        lambda x: product(x, weight.T) + bias,
        norm,
        error(own_length(inputs), OWN),
        error(inputs, profile),
        (absolute, size),
        size,
        shapes,
    )


def circular_convolution(
    profile: Arithmetic, map_size: list[int], real: Array, pairs: Array, bias: Array
) -> Step:
    """Circular convolution stored by frequency: (C7)."""
    height, width = map_size
    _require_blocks(height, width, real, pairs, bias)
    outputs, inputs = real.shape[1:]
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

    deployed = error(deployed_error(height, width, profile.unit), inputs, profile)
    mine = error(own_error(height, width), own_length(inputs), OWN)
    turned = convolution(height, width, real, pairs)

    def shapes(shape: Shape) -> list[Shape]:
        if shape != (inputs, height, width):
            raise ValueError(f"a convolution of {inputs} x {height} x {width} behind {shape}")
        return [(outputs, height, width)]

    return Step(
        lambda x: turned(x) + bias[:, None, None],
        norm,
        rounded(mine, norm, size),
        deployed,
        (inside * max(absolute, 1.0), inside * size),
        size,
        shapes,
    )


def _require_blocks(height: int, width: int, real: Array, pairs: Array, bias: Array) -> None:
    """Compared by their numbers alone: nothing of the size of the map is made before."""
    alone, paired = counts(height, width)
    expected = (alone, *real.shape[1:]), (paired, 2, *real.shape[1:]), real.shape[1:2]
    fit = (real.shape, pairs.shape, bias.shape) == expected and real.ndim == 3 and real.size
    if max(height, width) > LARGEST_SIDE or not fit:
        raise ValueError(
            f"blocks {real.shape}, {pairs.shape} and bias {bias.shape} of a convolution of "
            f"{height} x {width} pixels, of at most {LARGEST_SIDE} on either side"
        )


def normalize(profile: Arithmetic, mean: Array, std: Array) -> Step:
    """(x - mean) / std, channel by channel: two roundings of each entry (C8)."""
    if mean.ndim != 1 or mean.shape != std.shape or not np.all(std > 0):
        raise ValueError(f"mean {mean.shape} and std {std.shape} of an input normalisation")

    def shapes(shape: Shape) -> list[Shape]:
        if shape[0] != len(mean):
            raise ValueError(f"{len(mean)} means for {shape[0]} channels")
        return [shape]

    def evaluate(x: Array) -> Array:
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
        shapes=shapes,
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
    growth = (float(size), 0.0)
    return Step(evaluate, 1.0, own, deployed, growth, shapes=lambda shape: [divided(shape, size)])


def convex_combination(
    profile: Arithmetic, branch: list[Any], share: Array, **tensors: Array
) -> Step:
    """t x + (1 - t) B(x): (C14). Each path meets at most three roundings, 1 - t among them."""
    if share.shape or not 0.0 <= share <= 1.0:
        raise ValueError(f"the share of a convex combination is {share}")
    steps = _branch_steps(profile, branch, tensors)
    kept, rest = float(share), (1.0 - float(share)) * UP

    def evaluate(x: Array) -> Array:
        output = x
        for step in steps:
            output = step.evaluate(output)
        joined: Array = kept * x + (1.0 - kept) * output
        return joined

    def shapes(shape: Shape) -> list[Shape]:
        met = [shape]
        for step in steps:
            met += step.shapes(met[-1])
        if met[-1] != shape:
            raise ValueError(f"a branch turns shape {shape} into {met[-1]}")
        return met

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
        shapes,
    )


def _branch_steps(profile: Arithmetic, branch: list[Any], tensors: dict[str, Array]) -> list[Step]:
    """The layers of a branch, each with its own tensors."""
    steps = []
    for index, layer in enumerate(branch):
        names = [name for name in tensors if name.startswith(f"branch.{index}.")]
        state = {name.split(".", 2)[2]: tensors.pop(name) for name in names}
        steps.append(build(profile, *specified(layer), state))
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


KINDS = {
    "dense": Kind(dense, (), ("weight", "bias")),
    "circular_convolution": Kind(circular_convolution, ("map_size",), ("real", "pairs", "bias")),
    "normalize": Kind(normalize, (), ("mean", "std")),
    "scaled_average_pool": Kind(scaled_average_pool, ("size",)),
    "l2_pool": Kind(l2_pool, ("size",)),
    "convex_combination": Kind(convex_combination, ("branch",), ("share",)),
    **MIXING_KINDS,
    **REFLECTION_KINDS,
    **EXACT_KINDS,
}
"""What a file may name."""


def build(profile: Arithmetic, kind: Any, configuration: Any, tensors: dict[str, Array]) -> Step:
    """A layer of a file, its configuration and tensors exactly those of its kind."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"unknown layer kind {kind!r}, known: {', '.join(KINDS)}")
    make, names, own = KINDS[kind]
    if not isinstance(configuration, dict) or set(configuration) != set(names):
        raise ValueError(f"configuration {configuration!r} of a layer {kind}")
    for name, value in configuration.items():
        if name != "branch" and not may_be(name, value):
            raise ValueError(f"{name} {value!r} of a layer {kind}")
    if {name for name in tensors if not name.startswith("branch.")} != set(own):
        raise ValueError(f"tensors {sorted(tensors)} of a layer {kind}")
    return sound(make(profile, **configuration, **tensors))


def require_depth(layers: list[tuple[Any, Any]], deep: int = 0) -> int:
    """How many layers there are, those of branches included, unless there are too many or branches
    lie too deep."""
    found = len(layers)
    for kind, configuration in layers:
        if kind == "convex_combination" and isinstance(configuration, dict):
            branch = [specified(layer) for layer in listed(configuration.get("branch"))]
            if any(inner == "normalize" for inner, _ in branch):
                raise ValueError("a branch cannot hold a layer 'normalize'")
            found += require_depth(branch, deep + 1)
    if found > MOST_LAYERS or deep > DEEPEST_BRANCH:
        raise ValueError(
            f"a network of more than {MOST_LAYERS} layers, or {DEEPEST_BRANCH} branches deep"
        )
    return found
