"""The promises as measurements: orthogonality, UPD, unit gradient, on any model at hand."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.fixed import Normalize
from unitmargin.frozen import FrozenNetwork
from unitmargin.models import Classifier
from unitmargin.promises import (
    LIPSCHITZ,
    SCALING,
    LayerAudit,
    audit_rows,
    head_error,
    head_promise,
    head_weight,
    is_signed_distance,
    named_layers,
)

UPD_TOLERANCE = 1e-5
"""On pair distances of the head's rows: the paper's own figure for L-BFGS at 10 classes."""

UNIT_GRADIENT_TOLERANCE = 1e-5
"""On pairwise gradient norms in float64 evaluation of float32 weights."""

GRADIENT_BATCH = 128
"""Samples a chunk of the gradient measurement: bounds its memory."""


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
        >>> from unitmargin.activations import Abs
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
    return float((pair_distances(weight) - 1.0).abs().max())


def pair_distances(weight: Float[Tensor, "classes features"]) -> Float[Tensor, " pairs"]:
    """Distances of all row pairs h < k, in float64: the paper's figure on UPD matrices."""
    return nn.functional.pdist(weight.detach().double())


def pair_gradient_norms(
    model: Classifier | FrozenNetwork, x: Float[Tensor, "batch *shape"]
) -> Float[Tensor, "batch pairs"]:
    r"""Norms :math:`\|\nabla(f_h - f_k)\|` for all pairs h < k at each input.

    Taken with respect to the normalised input, in which a UGNN promises 1 (the normalisation's
    own constant is accounted for in the certificate). Evaluated in the model's dtype.
    Cost: one forward and C backward passes a sample.
    Source: the paper's appendix, section "The Unitary Gradient Property".
    """
    return torch.cat([_pair_gradient_norms(model, chunk) for chunk in x.split(GRADIENT_BATCH)])


def _pair_gradient_norms(model: Classifier | FrozenNetwork, x: Tensor) -> Tensor:
    layers: list[nn.Module] = [layer for _, layer in named_layers(model)]
    with torch.no_grad():
        if isinstance(layers[0], Normalize):
            x = layers.pop(0)(x)
    probe = x.detach().requires_grad_(True)
    output = probe
    with torch.enable_grad():
        for layer in layers:
            output = layer(output)
        rows = [
            torch.autograd.grad(output[:, index].sum(), probe, retain_graph=True)[0].flatten(1)
            for index in range(output.shape[1])
        ]
    gradients = torch.stack(rows, dim=1).double()
    centred = gradients - gradients.mean(1, keepdim=True)
    gram = centred @ centred.mT
    squares = gram.diagonal(dim1=1, dim2=2)
    squared = squares[:, :, None] + squares[:, None, :] - 2.0 * gram
    first, second = torch.triu_indices(output.shape[1], output.shape[1], offset=1)
    return squared[:, first, second].clamp_min(0.0).sqrt()


def unit_gradient_error(
    model: Classifier | FrozenNetwork, x: Float[Tensor, "batch *shape"]
) -> float:
    """Largest deviation from 1 of any pairwise gradient norm at the given inputs.

    Source: the paper, section 3 (characterisation of signed distance classifiers).
    """
    return float((pair_gradient_norms(model, x) - 1.0).abs().max())


@dataclass(frozen=True)
class Audit:
    """What a network keeps of its promises.

    Attributes:
        layers: one row a layer, inner layers behind the one that holds them (the head has its own
            figure).
        orthogonality_error: largest deviation from 1 of a singular value, over the layers that
            promise semi-orthogonality.
        lipschitz_error: how far the norm of a layer that promises no more exceeds 1; 0 if none.
        head: what the head promises of its rows: upd, orthonormal or unit_rows.
        head_error: largest deviation from that promise.
        unit_gradient_error: largest deviation of a pairwise gradient norm; NaN without inputs, and
            for a network that does not promise unit gradients.
        signed_distance: whether the network promises to be a signed distance classifier (every
            layer GNP, a UPD head). If not, margins are lower bounds of distances and no more.
    """

    layers: tuple[LayerAudit, ...]
    orthogonality_error: float
    lipschitz_error: float
    head: str
    head_error: float
    unit_gradient_error: float
    signed_distance: bool

    @property
    def upd_error(self) -> float:
        """Largest deviation from 1 of a pair distance; NaN for a head that promises otherwise."""
        return self.head_error if self.head == "upd" else float("nan")

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.layers)
        rows = [
            f"{row.name:<{width}} {row.kind:<22} {row.smallest:.9f} {row.largest:.9f} "
            f"{row.promise if row.kept else f'not {row.promise}'}"
            for row in self.layers
        ]
        lines = [
            f"{'layer':<{width}} {'kind':<22} {'smallest':>11} {'largest':>11} promise",
            *rows,
            f"orthogonality error {self.orthogonality_error:.2e}",
        ]
        if any(row.promise == LIPSCHITZ for row in self.layers):
            lines.append(f"Lipschitz error     {self.lipschitz_error:.2e}")
        lines.append(f"{HEAD_NAMES[self.head]:<19} {self.head_error:.2e}")
        if self.signed_distance:
            lines.append(f"unit-gradient error {self.unit_gradient_error:.2e}")
        else:
            lines.append("certificates are lower bounds: not a signed distance classifier")
        return "\n".join(lines)


HEAD_NAMES = {
    "upd": "UPD error",
    "orthonormal": "head error",
    "unit_rows": "row-norm error",
}


def audit(
    model: Classifier | FrozenNetwork, x: Float[Tensor, "batch *shape"] | None = None
) -> Audit:
    """Measure every promise of a trained or frozen network.

    Args:
        model: a classifier in training, or a frozen network.
        x: inputs for the unit-gradient error; without them that figure is NaN.

    Cost: one eigenvalue problem a weighted layer; C backward passes a sample of ``x``.

    Example:
        >>> from unitmargin.models import UGNN
        >>> audit(UGNN(in_shape=(1, 8, 8), n_classes=10)).orthogonality_error < 1e-5
        True
    """
    rows = [row for name, layer in named_layers(model)[:-1] for row in audit_rows(name, layer)]
    orthogonal = [row.deviation for row in rows if row.promise not in (LIPSCHITZ, SCALING)]
    excess = [row.largest - 1.0 for row in rows if row.promise == LIPSCHITZ]
    signed_distance, promise = is_signed_distance(model), head_promise(model)
    gradients = x if signed_distance else None
    return Audit(
        layers=tuple(rows),
        orthogonality_error=max(orthogonal, default=0.0),
        lipschitz_error=max(0.0, *excess, 0.0),
        head=promise,
        head_error=head_error(promise, head_weight(model)),
        unit_gradient_error=float("nan")
        if gradients is None
        else unit_gradient_error(model, gradients),
        signed_distance=signed_distance,
    )
