r"""Proved bounds of the rounding error of a network's logit differences, layer by layer.

Equation numbers are those of docs/soundness.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from unitmargin.fixed import FixedLayer, Normalize
from unitmargin.frozen.arithmetic import (
    LARGEST_SAFE,
    SMALLEST_NORMAL,
    UP,
    WIDE,
    Affine,
    gamma,
)
from unitmargin.frozen.blocked import WideConvolution, WideDense
from unitmargin.frozen.layers import CircularConvolution, Dense
from unitmargin.frozen.profiles import Profile
from unitmargin.frozen.spectral import (
    LayerConstants,
    pair_distance_bounds,
)
from unitmargin.frozen.transforms import transform_error

BIAS_ROUNDINGS = 3
"""Roundings of a convolution's bias beside those of the sum it joins: the root of the number of
pixels, its product with the bias, and one addition."""

HEAD_ROUNDINGS = 3
"""Roundings of a logit beside those of its dot product: the bias, and the difference of two."""


@dataclass(frozen=True)
class LayerRounding:
    """What one layer adds to the error of a logit difference.

    Attributes:
        kind: the layer's registered name.
        norm: S, its proved Lipschitz bound.
        error: e, the error made in the layer, as a function of the input's norm.
        output: N, the norm of its computed output.
        largest: bound of any number computed on the way.
        total: error of its computed output, earlier layers included.
    """

    kind: str
    norm: float
    error: Affine
    output: Affine
    largest: Affine
    total: Affine


def layer_rounding(
    layer: FixedLayer, constants: LayerConstants, incoming: Affine, profile: Profile
) -> LayerRounding:
    """Error and output norm of one deployed layer for inputs of the given norm."""
    if isinstance(layer, Dense):
        error, largest = _dense(layer, constants, incoming, profile)
    elif isinstance(layer, CircularConvolution):
        error, largest = _convolution(layer, constants, incoming, profile)
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
    return error + _underflow(inputs, outputs, profile), terms


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
    error = error + _underflow(pixels * (inputs + pixels), pixels * outputs, profile)
    largest = (turned * constants.absolute + Affine(constants.bias) + summed) * float(pixels)
    return error, largest


def _narrowed(
    incoming: Affine, constants: LayerConstants, error: Affine, profile: Profile
) -> Affine:
    """Rounding of a float64 output to the profile's type."""
    output = incoming * constants.norm + Affine(constants.bias) + error
    return output * profile.unit


def _underflow(operations: int, outputs: int, profile: Profile) -> Affine:
    """Norm of what underflow or flushing may cost all outputs of a layer."""
    return Affine(3.0 * (operations + 4) * SMALLEST_NORMAL[profile.dtype] * math.sqrt(outputs))


@dataclass(frozen=True)
class RoundingBounds:
    r"""Constants of the sound radius of one network under one profile.

    :math:`E_{lk}(\rho) = \alpha_{lk} + \beta_{lk} \rho` bounds the error of the computed difference
    of logits l and k at an input whose (normalised) norm is rho: equation (12).

    Attributes:
        profile: name of the execution profile.
        lipschitz: :math:`L_{lk}`, float64, zero on the diagonal.
        alpha, beta: the error's constant and slope, float64.
        input_scale: Lipschitz constant of the input normalisation; 1 without one.
        largest: bound of every number computed on the way.
        limit: value of ``largest`` from which on nothing is claimed.
        distance: largest distance of two rows of the head.
        layers: the error layer by layer, head included.
    """

    profile: str
    lipschitz: Float[Tensor, "c c"]
    alpha: Float[Tensor, "c c"]
    beta: Float[Tensor, "c c"]
    input_scale: float
    largest: Affine
    limit: float
    distance: float
    layers: tuple[LayerRounding, ...]

    def explain(self, norm: float = 1.0) -> str:
        """Which layer costs what: its part of the slack ``2 E`` of the worst pair of classes, at
        an input of the given normalised norm."""
        costs, after = [2.0 * self.layers[-1].error.at(norm)], self.distance
        for row in reversed(self.layers[:-1]):
            costs.append(2.0 * after * row.error.at(norm))
            after *= row.norm
        lines = [f"{'layer':<28} {'norm':>14} {'slack':>10}"]
        lines += [
            f"{f'{index} {row.kind}':<28} {row.norm:>14.10f} {cost:>10.2e}"
            for index, (row, cost) in enumerate(zip(self.layers, reversed(costs), strict=True))
        ]
        total = f"{self.profile} at norm {norm:g}"
        return "\n".join([*lines, f"{total:<43} {sum(costs):>10.2e}"])


def rounding_bounds(
    layers: Sequence[FixedLayer],
    constants: Sequence[LayerConstants],
    profile: Profile,
    at_zero: Sequence[float] = (),
) -> RoundingBounds:
    """Propagate norms and errors from the input to the logits: equations (7) to (12).

    Args:
        layers: the layers as the profile deploys them; the last one is the head.
        constants: of the same layers.
        at_zero: norms of the exact activations after each layer but the head at a normalised
            input of zero, which sharpen the norms (equation (13)); optional.
    """
    rows, product = _propagate(layers[:-1], constants, profile, at_zero)
    norm, error = (rows[-1].output, rows[-1].total) if rows else (Affine(slope=1.0), Affine())
    head = layers[-1]
    assert isinstance(head, Dense)  # checked by the network
    distances = pair_distance_bounds(head.weight)
    alpha, beta = _head(head, norm, profile)
    widest = Affine(float(alpha.max()), float(beta.max()))
    rows.append(LayerRounding(head.kind, constants[-1].norm, widest, norm, norm, widest))
    first = layers[0]
    return RoundingBounds(
        profile=profile.name,
        lipschitz=distances * product,
        alpha=(alpha + distances * error.constant) * UP,
        beta=(beta + distances * error.slope) * UP,
        input_scale=constants[0].norm if isinstance(first, Normalize) else 1.0,
        largest=_largest(rows),
        limit=LARGEST_SAFE[profile.dtype],
        distance=float(distances.max()),
        layers=tuple(rows),
    )


def _propagate(
    layers: Sequence[FixedLayer],
    constants: Sequence[LayerConstants],
    profile: Profile,
    at_zero: Sequence[float],
) -> tuple[list[LayerRounding], float]:
    """All layers but the head, and the product of their norms."""
    norm, total, product, reach = Affine(slope=1.0), Affine(), 1.0, 1.0
    rows: list[LayerRounding] = []
    for index, layer in enumerate(layers):
        own = constants[index]
        normalises = isinstance(layer, Normalize)
        row = (
            _normalisation(layer, index, own, profile)
            if isinstance(layer, Normalize)
            else layer_rounding(layer, own, norm, profile)
        )
        product *= own.norm * UP
        reach *= 1.0 if normalises else own.norm * UP
        total = (total * own.norm + row.error) * UP  # earlier errors pass through the layer
        norm = row.output
        if at_zero:
            other = (Affine(at_zero[index], reach) + total) * UP
            constant = min(norm.constant, other.constant)
            norm = Affine(constant, max(norm.slope, other.slope))
        rows.append(replace(row, output=norm, total=total))
    return rows, product


def _normalisation(
    layer: Normalize, index: int, constants: LayerConstants, profile: Profile
) -> LayerRounding:
    """(7): the norm is that of the normalised input, of which each entry meets two roundings."""
    if index:
        raise ValueError(
            f"the input normalisation must be the first layer, got one at position {index}; "
            "fold it into the weights of its neighbour"
        )
    error = Affine(slope=gamma(2, profile.unit))
    output = Affine(slope=1.0 + error.slope) * UP
    return LayerRounding(layer.kind, constants.norm, error, output, output, error)


def _head(head: Dense, incoming: Affine, profile: Profile) -> tuple[Tensor, Tensor]:
    """(12), last term: rounding of the two logits themselves; constant and slope of each pair."""
    features = head.weight.shape[1]
    own = profile.length(features) + HEAD_ROUNDINGS
    relative = gamma(own, profile.unit) * UP
    norms = head.weight.cpu().double().norm(dim=1) * UP
    biases = head.bias.cpu().double().abs()
    tiny = _underflow(features, 4, profile).constant
    norm_sums = norms[:, None] + norms[None, :]
    bias_sums = biases[:, None] + biases[None, :]
    alpha = relative * (norm_sums * incoming.constant + bias_sums) + tiny
    return alpha * UP, relative * norm_sums * incoming.slope * UP


def _largest(rows: Sequence[LayerRounding]) -> Affine:
    """One bound for the numbers of all layers."""
    constants = max(row.largest.constant for row in rows)
    slopes = max(row.largest.slope for row in rows)
    return Affine(constants, slopes)
