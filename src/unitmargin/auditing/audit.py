"""Every promise of a network, measured."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from unitmargin.auditing.gradients import unit_gradient_error
from unitmargin.auditing.rows import LayerAudit, largest_error, network_rows
from unitmargin.layers.contract import Network
from unitmargin.layers.promises import GNP, LIPSCHITZ, UPD, Promise


@dataclass(frozen=True)
class Audit:
    """What a network keeps of its promises.

    Attributes:
        layers: one row a layer, inner layers behind the one that holds them (the head has its own
            figure).
        head: what the head promises of its rows.
        head_error: largest deviation from that promise.
        unit_gradient_error: largest deviation of a pairwise gradient norm; NaN without inputs, and
            for a network that does not promise unit gradients.
        signed_distance: whether the network promises to be a signed distance classifier (every
            layer GNP, a UPD head). If not, margins are lower bounds of distances and no more.
    """

    layers: tuple[LayerAudit, ...]
    head: Promise
    head_error: float
    unit_gradient_error: float
    signed_distance: bool

    @property
    def orthogonality_error(self) -> float:
        """Largest deviation from 1 of a singular value, over the layers that promise
        semi-orthogonality."""
        return largest_error(self.layers, GNP)

    @property
    def lipschitz_error(self) -> float:
        """How far the norm of a layer that promises no more exceeds 1; 0 if none."""
        return largest_error(self.layers, LIPSCHITZ)

    @property
    def upd_error(self) -> float:
        """Largest deviation from 1 of a pair distance; NaN for a head that promises otherwise."""
        return self.head_error if self.head == UPD else float("nan")

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.layers)
        rows = [
            f"{row.name:<{width}} {row.kind:<22} {row.smallest:.9f} {row.largest:.9f} "
            f"{row.promise.name if row.kept else f'not {row.promise.name}'}"
            for row in self.layers
        ]
        lines = [
            f"{'layer':<{width}} {'kind':<22} {'smallest':>11} {'largest':>11} promise",
            *rows,
            f"orthogonality error {self.orthogonality_error:.2e}",
        ]
        if any(row.promise == LIPSCHITZ for row in self.layers):
            lines.append(f"Lipschitz error     {self.lipschitz_error:.2e}")
        lines.append(f"{self.head.title:<19} {self.head_error:.2e}")
        if self.signed_distance:
            lines.append(f"unit-gradient error {self.unit_gradient_error:.2e}")
        else:
            lines.append("certificates are lower bounds: not a signed distance classifier")
        return "\n".join(lines)


def audit(network: Network, x: Float[Tensor, "batch *shape"] | None = None) -> Audit:
    """Measure every promise of a trained or frozen network.

    Args:
        network: a classifier in training, or a frozen network.
        x: inputs for the unit-gradient error; without them that figure is NaN.

    Cost: one eigenvalue problem a weighted layer; C backward passes a sample of ``x``.

    Example:
        >>> from unitmargin.frozen import Dense, FrozenNetwork
        >>> import torch
        >>> halves = torch.tensor([[0.5, 0.0], [-0.5, 0.0]])
        >>> audit(FrozenNetwork([Dense(halves, torch.zeros(2))], (2,))).head_error
        0.0
    """
    promise = network.head_promise
    signed_distance = network.signed_distance
    error = float("nan") if x is None or not signed_distance else unit_gradient_error(network, x)
    return Audit(
        layers=network_rows(network),
        head=promise,
        head_error=promise.measure(network.head_weight()),
        unit_gradient_error=error,
        signed_distance=signed_distance,
    )
