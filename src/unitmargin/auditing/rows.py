"""One row a layer: its gains, its promise, and whether it keeps it."""

from dataclasses import dataclass

import torch

from unitmargin.layers.contract import Layer, Network
from unitmargin.layers.promises import GNP, SCALING, Promise


@dataclass(frozen=True)
class LayerAudit:
    """One layer's figures.

    Attributes:
        name, kind: in the network, and of the layer.
        smallest, largest: extreme singular values; of a convex combination, bounds of them.
        promise: GNP, isometry, 1-Lipschitz or 1/std.
    """

    name: str
    kind: str
    smallest: float
    largest: float
    promise: Promise

    @property
    def error(self) -> float:
        """How far the promise fails; 0 for one that is not measured."""
        extremes = torch.tensor((self.smallest, self.largest), dtype=torch.float64)
        return self.promise.measure(extremes)

    @property
    def kept(self) -> bool:
        """Whether the promise is kept within its tolerance."""
        return self.error <= self.promise.tolerance

    @property
    def gnp(self) -> bool:
        """Whether the layer is GNP as measured; a normalisation is with std 1."""
        if self.promise == SCALING:
            return self.smallest == self.largest == 1.0
        return self.promise == GNP and self.kept


def layer_rows(name: str, layer: Layer) -> list[LayerAudit]:
    """The row of a layer, and behind it those of the layers inside it.

    Gains are exact (by frequency for convolutions), those of a convex combination bounds.
    """
    parts = [
        layer_rows(f"{name}.branch.{index}", inner) for index, inner in enumerate(layer.sublayers())
    ]
    gains = layer.gains([rows[0].largest for rows in parts])
    row = LayerAudit(name, type(layer).__name__, *gains, layer.promise)
    return [row, *(row for rows in parts for row in rows)]


def network_rows(network: Network) -> tuple[LayerAudit, ...]:
    """The rows of all layers but the head."""
    return tuple(row for name, layer in network.named_layers() for row in layer_rows(name, layer))


def largest_error(rows: tuple[LayerAudit, ...], promise: Promise) -> float:
    """Largest error over the layers whose promise is measured by the same finding; 0 if none is."""
    errors = (row.error for row in rows if row.promise.finding == promise.finding)
    return max(errors, default=0.0)
