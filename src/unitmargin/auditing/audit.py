"""Every promise of a network, measured."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unitmargin.auditing.gradients import unit_gradient_error
from unitmargin.data import ENCODING
from unitmargin.foundation.choice import require_kind
from unitmargin.foundation.full_precision import in_full_precision
from unitmargin.foundation.numbers import Numbers, as_tensor, require_encoded
from unitmargin.frozen import FrozenNetwork
from unitmargin.layers.contract import Layer
from unitmargin.layers.faithful import require_faithful
from unitmargin.layers.margin import require_several_classes
from unitmargin.layers.network import Network
from unitmargin.layers.promises import GNP, LIPSCHITZ, SCALING, UPD, Promise


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
    try:
        gains = layer.gains([rows[0].largest for rows in parts])
    except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
        raise ValueError(unmeasurable(name, str(error))) from None
    if not all(map(math.isfinite, gains)):
        raise ValueError(unmeasurable(name, "it has gains that are not finite"))
    row = LayerAudit(name, type(layer).__name__, *gains, layer.promise)
    return [row, *(row for rows in parts for row in rows)]


def unmeasurable(name: str, reason: str) -> str:
    """What to say of a weight whose singular values cannot be computed."""
    first = reason.partition("\n")[0]
    return (
        f"{name} must have finite weights of full rank, got a weight that cannot be measured "
        f"({first}); lower the learning rate, or go back to an earlier checkpoint"
    )


def head_error(network: Network) -> float:
    """How far the head fails its promise."""
    try:
        weight = network.head_weight()
        require_several_classes(len(weight))
        error = network.head_promise.measure(weight)
    except torch.linalg.LinAlgError as fault:  # type: ignore[attr-defined]
        raise ValueError(unmeasurable("head", str(fault))) from None
    if not math.isfinite(error):
        raise ValueError(unmeasurable("head", f"its deviation is {error}"))
    return error


def network_rows(network: Network) -> tuple[LayerAudit, ...]:
    """The rows of all layers but the head."""
    return tuple(row for name, layer in network.named_layers() for row in layer_rows(name, layer))


def largest_error(rows: tuple[LayerAudit, ...], promise: Promise) -> float:
    """Largest error over the layers whose promise is measured by the same finding; 0 if none is."""
    errors = (row.error for row in rows if row.promise.finding == promise.finding)
    return max(errors, default=0.0)


@dataclass(frozen=True)
class Audit:
    """What a network keeps of its promises.

    Attributes:
        layers: one row a layer, inner layers behind the one that holds them (the head has its own
            figure).
        head: what the head promises of its rows.
        head_error: largest deviation from that promise.
        unit_gradient_error: largest deviation of a pairwise gradient norm, of more than 100 classes
            over the pairs of 100 drawn ones; NaN without inputs, and for a network that does not
            promise unit gradients.
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
        width = max((len(row.name) for row in self.layers), default=len("layer"))
        lines = [f"{'layer':<{width}} {'kind':<22} {'smallest':>11} {'largest':>11} promise"]
        lines += [
            f"{row.name:<{width}} {row.kind:<22} {row.smallest:.9f} {row.largest:.9f} "
            f"{row.promise.name if row.kept else f'not {row.promise.name}'}"
            for row in self.layers
        ]
        lines.append(f"orthogonality error {self.orthogonality_error:.2e}")
        if any(row.promise == LIPSCHITZ for row in self.layers):
            lines.append(f"Lipschitz error     {self.lipschitz_error:.2e}")
        lines.append(f"{self.head.title:<19} {self.head_error:.2e}")
        if self.signed_distance:
            lines.append(f"unit-gradient error {self.unit_gradient_error:.2e}")
        else:
            lines.append("certificates are lower bounds: not a signed distance classifier")
        return "\n".join(lines)


@in_full_precision
def audit(network: Network, x: Numbers | None = None) -> Audit:
    """Measure every promise of a trained or frozen network.

    Args:
        network: a classifier in training, or a frozen network.
        x: inputs ``(batch, *in_shape)`` for the unit-gradient error, a tensor, NumPy array or data
            frame, rounded to the type of the network; without them that figure is NaN.

    Raises:
        TypeError: a module that is not read layer by layer, a network that evaluates something else
            than what is read of it (:func:`unitmargin.layers.faithful.require_faithful`), or ``x``
            of another kind.
        ValueError: a weight that is not finite, by the name of its layer; a network of one class;
            no input, or inputs of another type, shape or device, or not finite.

    Cost: one eigenvalue problem a weighted layer; C backward passes a sample of ``x``, 100 of more
    classes.

    Example:
        >>> from unitmargin.frozen import Dense, FrozenNetwork
        >>> import torch
        >>> halves = torch.tensor([[0.5, 0.0], [-0.5, 0.0]])
        >>> audit(FrozenNetwork([Dense(halves, torch.zeros(2))], (2,))).head_error
        0.0
    """
    require_kind("network", network, Network, "pass a unitmargin model, or a frozen network")
    require_faithful(network)
    inputs = None if x is None else _inputs(network, x)
    # Before the gradients, which fail on broken weights too and cannot name the layer.
    deviation, rows = head_error(network), network_rows(network)
    signed_distance = network.signed_distance
    error = float("nan")
    if inputs is not None and signed_distance:
        error = unit_gradient_error(network, inputs.to(network.head_weight().dtype))
    return Audit(
        layers=rows,
        head=network.head_promise,
        head_error=deviation,
        unit_gradient_error=error,
        signed_distance=signed_distance,
    )


def _inputs(network: Network, x: Numbers) -> Tensor:
    """``x`` as a tensor; raises unless it is a batch of the network's inputs."""
    if isinstance(network, FrozenNetwork):
        require_encoded("x", x, network.facts.get(ENCODING))
    inputs = as_tensor("x", x)
    network.require_input(inputs)
    if not len(inputs):
        raise ValueError(
            "x must hold a sample at least, got none; leave it out to audit the layers"
        )
    if not bool(inputs.isfinite().all()):
        raise ValueError("x must be finite, got NaN or infinite entries; clean the inputs")
    return inputs
