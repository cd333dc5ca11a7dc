r"""Proved bounds of the rounding error of a network's logit differences, layer by layer.

Equation numbers are those of docs/soundness.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.dense import Dense
from unitmargin.frozen.network import FixedNetwork
from unitmargin.frozen.spectral import pair_distance_bounds
from unitmargin.layers.arithmetic import (
    LARGEST_SAFE,
    UP,
    Affine,
    Arithmetic,
    gamma,
    norm_bounds,
    product_up,
    require_bound,
)
from unitmargin.layers.bounds import LayerConstants, LayerRounding
from unitmargin.layers.contract import FixedLayer

HEAD_ROUNDINGS = 3
"""Roundings of a logit beside those of its dot product: the bias, and the difference of two."""


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

    Raises:
        ValueError: a negative number or NaN.
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

    def __post_init__(self) -> None:
        for name, pairs in vars(self).items():
            if isinstance(pairs, Tensor):
                require_bound(f"{name} of a pair of classes", float(pairs.min()))
        require_bound("the scale of the input", self.input_scale)

    def copied(self) -> "RoundingBounds":
        """The same bounds in tensors of their own."""
        lipschitz, alpha, beta = (
            pairs.clone() for pairs in (self.lipschitz, self.alpha, self.beta)
        )
        return replace(self, lipschitz=lipschitz, alpha=alpha, beta=beta)

    def explain(self, norm: float = 1.0) -> str:
        """Which layer costs what: its part of the slack ``2 E`` of the worst pair of classes, at
        an input of the given normalised norm. Layers of a branch follow their combination, which
        itself counts its own roundings alone."""
        head = self.layers[-1]
        costs = _costs(self.layers[:-1], self.distance, norm)
        costs.append(_Cost(f"{len(self.layers) - 1} {head.kind}", head.norm, head.error.at(norm)))
        lines = [f"{'layer':<28} {'norm':>14} {'slack':>10}"]
        lines += [f"{name:<28} {bound:>14.10f} {2.0 * cost:>10.2e}" for name, bound, cost in costs]
        total = f"{self.profile} at norm {norm:g}"
        slack = 2.0 * sum(cost.error for cost in costs)
        return "\n".join([*lines, f"{total:<43} {slack:>10.2e}"])


class _Cost(NamedTuple):
    """A line of ``explain``: what a layer of that norm adds to the error of a logit difference."""

    name: str
    norm: float
    error: float


def _costs(
    rows: Sequence[LayerRounding], after: float, norm: float, prefix: str = ""
) -> list[_Cost]:
    """Costs of layers in a row, whose errors are multiplied by ``after`` behind the last one."""
    costs: list[_Cost] = []
    for index, row in reversed(list(enumerate(rows))):
        inside = _costs(row.inside, after * row.passed, norm, f"{prefix}{index}.")
        own = after * row.error.at(norm) - sum(cost.error for cost in inside)
        costs = [_Cost(f"{prefix}{index} {row.kind}", row.norm, own), *inside, *costs]
        after *= row.norm
    return costs


def rounding_bounds(
    network: FixedNetwork,
    constants: Sequence[LayerConstants],
    profile: Arithmetic,
    at_zero: Sequence[float] = (),
) -> RoundingBounds:
    """Propagate norms and errors from the input to the logits: equations (7) to (12).

    Args:
        network: as the profile deploys it.
        constants: of its layers, head included.
        profile: how it is evaluated.
        at_zero: norms of the exact activations after each layer but the head at a normalised
            input of zero, by which norms are bounded then (equation (13)); optional.
    """
    rows, product = propagate(network.features(), constants, profile, at_zero)
    norm, error = (rows[-1].output, rows[-1].total) if rows else (Affine(slope=1.0), Affine())
    head = network.head
    distances = pair_distance_bounds(head.weight)
    alpha, beta, largest = _head(head, norm, profile)
    widest = Affine(float(alpha.max()), float(beta.max()))
    rows.append(LayerRounding(head.kind, constants[-1].norm, widest, norm, largest, widest))
    return RoundingBounds(
        profile=profile.name,
        lipschitz=_times(distances, product),
        alpha=(alpha + _times(distances, error.constant)) * UP,
        beta=(beta + _times(distances, error.slope)) * UP,
        input_scale=1.0 if network.normalisation is None else constants[0].norm,
        largest=Affine(
            max(row.largest.constant for row in rows), max(row.largest.slope for row in rows)
        ),
        limit=LARGEST_SAFE[profile.dtype],
        distance=float(distances.max()),
        layers=tuple(rows),
    )


def propagate(
    layers: Sequence[FixedLayer],
    constants: Sequence[LayerConstants],
    profile: Arithmetic,
    at_zero: Sequence[float] = (),
) -> tuple[list[LayerRounding], float]:
    """All layers but the head, and the product of their norms; see :func:`rounding_bounds`."""
    norm, total, product, reach = Affine(slope=1.0), Affine(), 1.0, 1.0
    rows: list[LayerRounding] = []
    for index, (layer, own) in enumerate(zip(layers, constants, strict=False)):
        row = layer.bound_rounding(own, norm, profile)
        product = product_up(product, own.norm)
        reach = reach if layer.normalises else product_up(reach, own.norm)
        total = (total * own.norm + row.error) * UP  # earlier errors pass through the layer
        norm = row.output
        if at_zero:
            other = (Affine(at_zero[index], reach) + total) * UP
            norm = Affine(other.constant, max(norm.slope, other.slope))
        rows.append(replace(row, output=norm, total=total))
    return rows, product


def _head(head: Dense, incoming: Affine, profile: Arithmetic) -> tuple[Tensor, Tensor, Affine]:
    """(12), last term: rounding of the two logits themselves; constant and slope of each pair, and
    a bound of the numbers met on the way to their difference."""
    features = head.weight.shape[1]
    relative = gamma(features + HEAD_ROUNDINGS, profile.unit) * UP
    norms = norm_bounds(head.weight.cpu())
    biases = head.bias.cpu().double().abs()
    tiny = profile.underflow(features, 4).constant
    norm_sums = norms[:, None] + norms[None, :]
    bias_sums = biases[:, None] + biases[None, :]
    alpha = _times(_times(norm_sums, incoming.constant) + bias_sums, relative) + tiny
    beta = _times(_times(norm_sums, incoming.slope), relative)
    largest = incoming * float(norm_sums.max()) + Affine(float(bias_sums.max())) + incoming
    return alpha * UP, beta * UP, largest


def _times(pairs: Float[Tensor, "c c"], factor: float) -> Float[Tensor, "c c"]:
    """Products of bounds as :func:`product_up` makes them, entry by entry."""
    products = torch.nextafter(pairs * factor, torch.full_like(pairs, torch.inf))
    return torch.where((pairs > 0) & (factor > 0), products, torch.zeros_like(pairs))
