"""Jacobians of layers by autograd, and the conditions GNP and UPD measured on them."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.layers.promises import UPD


def jacobian(function: nn.Module, x: Float[Tensor, "*shape"]) -> Float[Tensor, "out in"]:
    """Jacobian of a layer at one input (no batch axis), flattened to a matrix, by autograd."""
    probe = x.detach().clone().requires_grad_(True)
    output = function(probe[None]).flatten()
    rows = []
    for index in range(output.numel()):
        (row,) = torch.autograd.grad(output[index], probe, retain_graph=True)
        rows.append(row.flatten())
    return torch.stack(rows)


def gnp_error(layer: nn.Module, x: Float[Tensor, "*shape"]) -> float:
    """``max |J J^T - I|`` of a layer's Jacobian at one input (no batch axis).

    Cost: one backward pass an output entry; meant for small layers.
    Source: the paper, section 4, condition GNP.

    Example:
        >>> from unitmargin.layers.activations import Abs
        >>> gnp_error(Abs(), torch.tensor([1.0, -2.0]))
        0.0
    """
    matrix = jacobian(layer, x).double()
    eye = torch.eye(matrix.shape[0], dtype=torch.float64, device=matrix.device)
    return float((matrix @ matrix.mT - eye).abs().max())


def upd_error(weight: Float[Tensor, "classes features"]) -> float:
    """Largest deviation from 1 of the distance of two rows, in float64.

    Source: the paper, section 4.2, condition UPD.
    """
    return UPD.measure(weight)
