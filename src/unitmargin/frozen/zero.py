"""What layers make of zeros: norms of activations there, and whether biases are stated."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from unitmargin.frozen.network import FixedNetwork
from unitmargin.layers.arithmetic import (
    UP,
    Affine,
    Arithmetic,
    gamma,
    norm_bounds,
    product_up,
    sum_up,
)
from unitmargin.layers.bounds import LayerConstants
from unitmargin.layers.contract import FixedLayer, require_fixed


def norms_at_zero(
    network: FixedNetwork, constants: Sequence[LayerConstants], arithmetic: Arithmetic
) -> list[float]:
    """Upper bounds of the norms of the exact activations after each layer but the head, at a
    normalised input of zero: equation (13).

    They are those of the computed activations, plus the errors made on the way, each at the norm of
    what its layer was given; so no bias enters them.

    Args:
        network: as ``arithmetic`` evaluates it.
        constants: of its layers.
        arithmetic: that of float64.

    Raises:
        ValueError: a layer whose output at zero is larger than its constants say.
    """
    z = torch.zeros(1, *network.in_shape, dtype=arithmetic.dtype, device=network.device)
    total, norms = 0.0, []
    for index, (layer, own) in enumerate(zip(network.features(), constants, strict=False)):
        if not layer.normalises:
            require_stated(f"layer {index}", layer, own, z, arithmetic)
            error = layer.bound_rounding(own, Affine(_norm(z)), arithmetic).error.at(0.0)
            total = sum_up(product_up(total, own.norm), error)
            z = layer(z)
        norms.append(sum_up(_norm(z), total))
    return norms


def require_stated(
    name: str, layer: FixedLayer, constants: LayerConstants, x: Tensor, arithmetic: Arithmetic
) -> None:
    """Raise unless the output of a layer at zeros, and of the layers of its branch, is within the
    bound that follows from its constants.

    Args:
        name: of the layer in a message.
        layer: as ``arithmetic`` evaluates it.
        constants: of the layer.
        x: one input of the layer.
        arithmetic: that of float64.

    Raises:
        ValueError: an output whose norm is certainly larger.
    """
    inside = x
    branch = map(require_fixed, layer.sublayers())
    for index, (inner, own) in enumerate(zip(branch, constants.branch, strict=False)):
        require_stated(f"{name}.branch.{index}", inner, own, inside, arithmetic)
        inside = inner(inside)
    stated = layer.bound_rounding(constants, Affine(), arithmetic).output.at(0.0)
    output = layer(torch.zeros_like(x))
    found = _norm(output) / (1.0 + gamma(output.numel() + 8)) ** 2 / UP
    if stated < found < math.inf:
        raise ValueError(
            f"constants() of {name} ({type(layer).__name__}) must bound the norm of its output at "
            f"zeros by a bias, got bias {constants.bias:g} and an output of norm {found:g}; return "
            "LayerConstants(norm, bias=that norm)"
        )


def _norm(x: Tensor) -> float:
    """An upper bound of the norm of one activation."""
    return float(norm_bounds(x.flatten(1))[0])
