"""Every promise of a network, measured."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from unitmargin.auditing.gradients import unit_gradient_error
from unitmargin.auditing.rows import (
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
from unitmargin.frozen import FrozenNetwork
from unitmargin.models import Classifier


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
