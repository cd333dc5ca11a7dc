r"""Proved bounds of the rounding error of one deployed layer.

Equation numbers are those of docs/soundness.md.
"""

import math
from dataclasses import dataclass, replace

from unitmargin.frozen.blocked import WideConvolution, WideDense
from unitmargin.frozen.combination import ConvexCombination
from unitmargin.frozen.convolution import CircularConvolution
from unitmargin.frozen.dense import Dense
from unitmargin.frozen.profiles import Profile
from unitmargin.frozen.spectral import LayerConstants
from unitmargin.frozen.transforms import transform_error
from unitmargin.layers.arithmetic import SMALLEST_NORMAL, UP, WIDE, Affine, gamma
from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.contract import FixedLayer

BIAS_ROUNDINGS = 3
"""Roundings of a convolution's bias beside those of the sum it joins: the root of the number of
pixels, its product with the bias, and one addition."""

POOL_ROUNDINGS = 1
"""Roundings of an average beside one for each entry of its window: the division may be a product
with a rounded reciprocal."""

COMBINATION_ROUNDINGS = 3
"""Most roundings of a path of a convex combination: one minus the share, a product, the sum."""

ENTRIES = 2**40
"""More numbers than any activation has: in float32 they take four terabytes."""


@dataclass(frozen=True)
class LayerRounding:
    """What one layer adds to the error of a logit difference.

    Attributes:
        kind: the layer's registered name.
        norm: S, its proved Lipschitz bound.
        error: e, the error made in the layer, as a function of the input's norm.
        output: N, the norm of its computed output.
        largest: bound of any number computed on the way.
        total: error of its computed output, earlier layers included; within a branch, earlier
            layers of the branch.
        inside: the layers of its branch.
        passed: factor by which the error of the branch's output enters ``error``.
    """

    kind: str
    norm: float
    error: Affine
    output: Affine
    largest: Affine
    total: Affine
    inside: tuple["LayerRounding", ...] = ()
    passed: float = 0.0


def layer_rounding(
    layer: FixedLayer, constants: LayerConstants, incoming: Affine, profile: Profile
) -> LayerRounding:
    """Error and output norm of one deployed layer for inputs of the given norm.

    Raises:
        ValueError: a layer that states no rounding error.
    """
    if isinstance(layer, ConvexCombination):
        return _combination(layer, constants, incoming, profile)
    if isinstance(layer, Dense):
        error, largest = _dense(layer, constants, incoming, profile)
    elif isinstance(layer, CircularConvolution):
        error, largest = _convolution(layer, constants, incoming, profile)
    elif isinstance(layer, ScaledAveragePool):
        error, largest = _pool(layer, incoming, profile)
    else:
        error, largest = incoming * layer.rounding(profile.unit), incoming
    output = (incoming * constants.norm + Affine(constants.bias) + error) * UP
    return LayerRounding(layer.kind, constants.norm, error, output, largest + output, error)


def _dense(
    layer: Dense, constants: LayerConstants, incoming: Affine, profile: Profile
) -> tuple[Affine, Affine]:
    """(8): one dot product and one bias an output, in any order."""
    wide = isinstance(layer, WideDense)
    outputs, inputs = layer.weight.shape
    terms = incoming * constants.absolute + Affine(constants.bias)
    if wide:
        error = terms * gamma(inputs + 1)
        error = error + _narrowed(incoming, constants, error, profile)
    else:
        error = terms * gamma(profile.length(inputs) + 1, profile.unit)
    return error + underflow(inputs, outputs, profile), terms


def _convolution(
    layer: CircularConvolution, constants: LayerConstants, incoming: Affine, profile: Profile
) -> tuple[Affine, Affine]:
    """(9): transform, one product a frequency with the bias in it or after it, transform back."""
    wide = isinstance(layer, WideConvolution)
    outputs, inputs = layer.real.shape[1:]
    unit, length = (WIDE, inputs) if wide else (profile.unit, profile.length(inputs))
    turn = transform_error(layer.transform, unit)
    turned = incoming * (1.0 + turn)
    sums = gamma(length + 1, unit)  # one more: the bias, or Re Re - Im Im
    error = incoming * (turn * constants.norm) + turned * (sums * constants.absolute)
    error = error + Affine(constants.bias) * gamma(length + BIAS_ROUNDINGS, unit)
    summed = incoming * constants.norm + Affine(constants.bias) + error
    error = error + summed * turn
    if wide:
        error = error + _narrowed(incoming, constants, error, profile)
    pixels = layer.transform.n_pixels
    error = error + underflow(pixels * (inputs + pixels), pixels * outputs, profile)
    largest = (turned * constants.absolute + Affine(constants.bias) + summed) * float(pixels)
    return error, largest


def _narrowed(
    incoming: Affine, constants: LayerConstants, error: Affine, profile: Profile
) -> Affine:
    """Rounding of a float64 output to the profile's type."""
    output = incoming * constants.norm + Affine(constants.bias) + error
    return output * profile.unit


def _pool(layer: ScaledAveragePool, incoming: Affine, profile: Profile) -> tuple[Affine, Affine]:
    """(15): the absolute values of a window sum to at most its norm times its side."""
    entries = layer.size**2
    error = incoming * gamma(entries + POOL_ROUNDINGS, profile.unit)
    return error + underflow(entries, ENTRIES, profile), incoming * float(layer.size)


def _combination(
    layer: ConvexCombination, constants: LayerConstants, incoming: Affine, profile: Profile
) -> LayerRounding:
    """(17): errors accumulate in the branch, then each of two paths meets three roundings."""
    share = float(layer.share)
    rest = 1.0 - share
    norm, total = incoming, Affine()
    rows: list[LayerRounding] = []
    for sublayer, own in zip(layer.sublayers(), constants.branch, strict=True):
        row = layer_rounding(sublayer, own, norm, profile)
        total = (total * own.norm + row.error) * UP
        norm = row.output
        rows.append(replace(row, total=total))
    paths = incoming * share + norm * rest
    error = total * rest + paths * gamma(COMBINATION_ROUNDINGS, profile.unit)
    error = error + underflow(COMBINATION_ROUNDINGS, ENTRIES, profile)
    output = (paths + error) * UP
    largest = sum((row.largest for row in rows), incoming + output)
    return LayerRounding(
        layer.kind, constants.norm, error, output, largest, error, tuple(rows), rest
    )


def underflow(operations: int, outputs: int, profile: Profile) -> Affine:
    """Norm of what underflow or flushing may cost all outputs of a layer."""
    return Affine(3.0 * (operations + 4) * SMALLEST_NORMAL[profile.dtype] * math.sqrt(outputs))
