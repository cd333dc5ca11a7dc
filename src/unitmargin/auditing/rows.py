"""What each layer and head promises, and whether its weights keep it."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.frozen import ConvexCombination, Dense, FrozenNetwork
from unitmargin.frozen.weighted import WeightedLayer
from unitmargin.heads import Head
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.singular_values import singular_values
from unitmargin.models import Classifier, ConvexResidual
from unitmargin.orthogonal import OrthogonalConv2d, OrthogonalLinear

ORTHOGONALITY_TOLERANCE = 1e-5
"""On singular values of float32 weights: 40 times the rounding of an exactly orthogonal 3072-wide
weight, 100 times below what moves a radius in its fourth digit."""

LIPSCHITZ_TOLERANCE = 1e-6
"""On the norm of a layer that promises only to be 1-Lipschitz: a few float32 layers in a branch."""

GNP = "GNP"
"""J J^T = I almost everywhere: gradients keep their norm."""

ISOMETRY = "isometry"
"""J^T J = I with more outputs than inputs: distances are kept, gradients are projected."""

LIPSCHITZ = "1-Lipschitz"
"""A norm of at most 1, nothing else."""

SCALING = "1/std"
"""An input normalisation: its constant enters every certificate."""

HEAD_CHECKS = {"upd": "upd", "orthonormal": "orthonormal_head", "unit_rows": "unit_rows"}
"""Promise of a head to the name of its check."""


@dataclass(frozen=True)
class LayerAudit:
    """One layer's figures.

    Attributes:
        name, kind: in the network, and of the layer.
        smallest, largest: extreme singular values; of a convex combination, bounds of them.
        promise: GNP, isometry, 1-Lipschitz or 1/std.
        kept: whether singular values are 1 (GNP, isometry) or at most 1 (1-Lipschitz) within
            tolerance; always true of 1/std.
    """

    name: str
    kind: str
    smallest: float
    largest: float
    promise: str
    kept: bool

    @property
    def gnp(self) -> bool:
        """Whether the layer is GNP as measured; a normalisation is with std 1."""
        if self.promise == SCALING:
            return self.smallest == self.largest == 1.0
        return self.promise == GNP and self.kept

    @property
    def deviation(self) -> float:
        """Largest deviation of a singular value from 1."""
        return max(abs(self.smallest - 1.0), abs(self.largest - 1.0))


def layer_promise(layer: nn.Module) -> str:
    """What the layer states of itself."""
    if isinstance(layer, Normalize):
        return SCALING
    if bool(getattr(layer, "gnp", False)):
        return GNP
    weighted = isinstance(layer, WeightedLayer | OrthogonalLinear | OrthogonalConv2d)
    return ISOMETRY if weighted else LIPSCHITZ


def weight_singular_values(layer: nn.Module) -> Float[Tensor, " values"] | None:
    """Singular values of a layer's linear part as it is evaluated; None if it has none."""
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


def audit_layer(name: str, layer: nn.Module) -> LayerAudit:
    """Extreme singular values of one layer, exact (by frequency for convolutions)."""
    return audit_rows(name, layer)[0]


def audit_rows(name: str, layer: nn.Module) -> list[LayerAudit]:
    """The row of a layer, and behind it those of the layers inside it."""
    kind, promise = type(layer).__name__, layer_promise(layer)
    values = weight_singular_values(layer)
    if values is not None:
        row = _row(name, kind, float(values[0]), float(values[-1]), promise)
        return [row]
    if isinstance(layer, ConvexCombination | ConvexResidual):
        return _combination_rows(name, layer)
    if isinstance(layer, Normalize):
        scales = 1.0 / layer.std.double()
        return [_row(name, kind, float(scales.min()), float(scales.max()), promise)]
    if isinstance(layer, FixedLayer):
        smallest = 1.0 if promise == GNP else 0.0
        return [_row(name, kind, smallest, layer.norm(), promise)]
    raise ValueError(
        f"layer {name} of type {kind} cannot be audited; give it singular values or a norm"
    )


def _combination_rows(name: str, layer: ConvexCombination | ConvexResidual) -> list[LayerAudit]:
    """By the triangle inequality the gain lies between t - (1 - t) |B| and t + (1 - t) |B|."""
    inner = [
        row
        for index, sublayer in enumerate(layer.branch)
        for row in audit_rows(f"{name}.branch.{index}", sublayer)
    ]
    share = float(layer.share.detach())
    branch = (1.0 - share) * math.prod(row.largest for row in inner)
    kind = type(layer).__name__
    outer = _row(name, kind, max(0.0, share - branch), share + branch, LIPSCHITZ)
    return [outer, *inner]


def _row(name: str, kind: str, smallest: float, largest: float, promise: str) -> LayerAudit:
    deviation = max(1.0 - smallest, largest - 1.0)
    kept = {
        SCALING: True,
        LIPSCHITZ: largest <= 1.0 + LIPSCHITZ_TOLERANCE,
        GNP: deviation <= ORTHOGONALITY_TOLERANCE,
        ISOMETRY: deviation <= ORTHOGONALITY_TOLERANCE,
    }
    return LayerAudit(name, kind, smallest, largest, promise, kept[promise])


def named_layers(model: Classifier | FrozenNetwork) -> list[tuple[str, nn.Module]]:
    """All layers from input to logits, with names."""
    if isinstance(model, FrozenNetwork):
        return [(f"layers.{index}", layer) for index, layer in enumerate(model.layers)]
    return list(model.layers())


def head_weight(model: Classifier | FrozenNetwork) -> Float[Tensor, "classes features"]:
    """The output layer's weight as it is evaluated."""
    head = named_layers(model)[-1][1]
    if isinstance(head, Dense):
        return head.weight
    if isinstance(head, Head):
        with torch.no_grad():
            return head.weight()
    raise ValueError(f"the head must be Dense or a Head, got {type(head).__name__}")


def head_promise(model: Classifier | FrozenNetwork) -> str:
    """What the head promises of its rows: ``upd``, ``orthonormal`` or ``unit_rows``.

    A frozen network keeps it among its facts; one without that fact promises ``upd``, as UGNNs do.
    It decides what is checked, never what is certified.
    """
    if isinstance(model, FrozenNetwork):
        promise = model.facts.get("head", "upd")
        return promise if promise in HEAD_CHECKS else "upd"
    return model.head.promise


def head_error(promise: str, weight: Float[Tensor, "classes features"]) -> float:
    """Largest deviation from 1 of what the promise is about, in float64.

    ``upd``: distances of two rows; ``orthonormal``: singular values; ``unit_rows``: row norms.
    """
    wide = weight.detach().double()
    measured = {
        "upd": nn.functional.pdist,
        "orthonormal": torch.linalg.svdvals,
        "unit_rows": lambda rows: torch.linalg.vector_norm(rows, dim=1),
    }
    return float((measured[promise](wide) - 1.0).abs().max())


def is_signed_distance(model: Classifier | FrozenNetwork) -> bool:
    """Whether the network promises to be a signed distance classifier behind its normalisation:
    every layer GNP and a UPD head. With any other layer, certificates are lower bounds."""
    layers = [layer for _, layer in named_layers(model)[:-1]]
    promises = {layer_promise(layer) for layer in layers}
    return promises <= {GNP, SCALING} and head_promise(model) == "upd"
