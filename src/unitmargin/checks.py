"""The promises as measurements: orthogonality, UPD, unit gradient, on any model at hand."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.activations import Activation
from unitmargin.fixed import FixedLayer, Flatten, MaxPool, Normalize, PixelUnshuffle
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.frozen.layers import WeightedLayer, singular_values
from unitmargin.heads import UPDHead
from unitmargin.models import Classifier
from unitmargin.orthogonal import OrthogonalConv2d, OrthogonalLinear

ORTHOGONALITY_TOLERANCE = 1e-5
"""On singular values of float32 weights: 40 times the rounding of an exactly orthogonal 3072-wide
weight, 100 times below what moves a radius in its fourth digit."""

UPD_TOLERANCE = 1e-5
"""On pair distances of the head's rows: the paper's own figure for L-BFGS at 10 classes."""

UNIT_GRADIENT_TOLERANCE = 1e-5
"""On pairwise gradient norms in float64 evaluation of float32 weights."""

GRADIENT_BATCH = 128
"""Samples a chunk of the gradient measurement: bounds its memory."""


def weight_singular_values(layer: nn.Module) -> Float[Tensor, " values"] | None:
    """Singular values of a layer's linear part as it is used in forward; None if it has none."""
    with torch.no_grad():
        if isinstance(layer, WeightedLayer):
            return layer.singular_values()
        if isinstance(layer, OrthogonalLinear):
            return singular_values(layer.weight())
        if isinstance(layer, OrthogonalConv2d):
            spectrum = layer.spectrum()
            pairs = singular_values(spectrum.complex_pairs()).repeat(2)
            return torch.cat((singular_values(spectrum.real), pairs)).sort().values
    return None


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


def named_layers(model: Classifier | FrozenNetwork) -> list[tuple[str, nn.Module]]:
    """All layers from input to logits, with names."""
    if isinstance(model, FrozenNetwork):
        return [(f"layers.{index}", layer) for index, layer in enumerate(model.layers)]
    return list(model.layers())


@dataclass(frozen=True)
class LayerAudit:
    """One layer's figures: extreme singular values of its linear part, and whether it is GNP."""

    name: str
    kind: str
    smallest: float
    largest: float
    gnp: bool


@dataclass(frozen=True)
class Audit:
    """What a network keeps of its promises.

    Attributes:
        layers: one row a layer (the head has its own figure).
        orthogonality_error: largest deviation of any singular value from 1.
        upd_error: largest deviation of a pair distance of the head's rows from 1.
        unit_gradient_error: largest deviation of a pairwise gradient norm; NaN without inputs.
    """

    layers: tuple[LayerAudit, ...]
    orthogonality_error: float
    upd_error: float
    unit_gradient_error: float

    def __str__(self) -> str:
        rows = [
            f"{row.name:<14} {row.kind:<22} {row.smallest:.9f} {row.largest:.9f} "
            f"{'GNP' if row.gnp else '1/std' if row.kind == 'Normalize' else 'not GNP'}"
            for row in self.layers
        ]
        return "\n".join(
            [
                f"{'layer':<14} {'kind':<22} {'smallest':>11} {'largest':>11}",
                *rows,
                f"orthogonality error {self.orthogonality_error:.2e}",
                f"UPD error           {self.upd_error:.2e}",
                f"unit-gradient error {self.unit_gradient_error:.2e}",
            ]
        )


PERMUTATIONS = (Activation, Flatten, PixelUnshuffle, MaxPool)


def audit_layer(name: str, layer: nn.Module) -> LayerAudit:
    """Extreme singular values of one layer, exact (by frequency for convolutions)."""
    kind = type(layer).__name__
    values = weight_singular_values(layer)
    if values is not None:
        smallest, largest = float(values[0]), float(values[-1])
        within = max(1.0 - smallest, largest - 1.0) <= ORTHOGONALITY_TOLERANCE
        return LayerAudit(name, kind, smallest, largest, within)
    if isinstance(layer, Normalize):
        scales = 1.0 / layer.std.double()
        smallest, largest = float(scales.min()), float(scales.max())
        return LayerAudit(name, kind, smallest, largest, smallest == largest == 1.0)
    if isinstance(layer, FixedLayer):
        return LayerAudit(name, kind, 1.0, layer.norm(), isinstance(layer, PERMUTATIONS))
    raise ValueError(
        f"layer {name} of type {kind} cannot be audited; give it singular values or a norm"
    )


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
    named = named_layers(model)
    rows = [audit_layer(name, layer) for name, layer in named[:-1]]
    weighted = [row for row in rows if row.kind != "Normalize"]
    deviations = [max(abs(row.smallest - 1), abs(row.largest - 1)) for row in weighted]
    return Audit(
        layers=tuple(rows),
        orthogonality_error=max(deviations, default=0.0),
        upd_error=upd_error(head_weight(model)),
        unit_gradient_error=float("nan") if x is None else unit_gradient_error(model, x),
    )


def head_weight(model: Classifier | FrozenNetwork) -> Float[Tensor, "classes features"]:
    """The output layer's weight as it is used in forward."""
    head = named_layers(model)[-1][1]
    if isinstance(head, Dense):
        return head.weight
    if isinstance(head, UPDHead):
        with torch.no_grad():
            return head.weight()
    raise ValueError(f"the head must be Dense or a UPD head, got {type(head).__name__}")
