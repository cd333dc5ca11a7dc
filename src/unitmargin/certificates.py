r"""Certificates: label and radius from one forward pass, and the closest adversarial point.

For a classifier whose logit pairs are Lipschitz with constants :math:`L_{lk}`, the label l cannot
change within the radius :math:`r = \min_{k \ne l} (f_l - f_k) / L_{lk}` (the paper, observation on
certifiable robustness; L = 1 for an exact UGNN).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from unitmargin.frozen.network import FrozenNetwork

ROUNDING_ALLOWANCE = 2.0**-40
"""Subtracted from margins, a unit of input norm: 9e-13, a thousand times the float64 rounding
errors measured on networks of ten layers."""

RAY_STEPS = 60
"""Halvings of the ray search: they locate the crossing to one float64 ulp of a unit interval."""

RAY_GROWTH = 1.1
"""Factor between the trial points of the outward search."""

RAY_REACH = 3.0
"""How far outward the ray is searched, in units of the margin."""


@dataclass(frozen=True)
class Certificate:
    """What may be claimed of a batch of predictions; all tensors have one entry a sample.

    Attributes:
        label: predicted class; -1 where a logit is not finite.
        runner_up: class with the second largest logit; -1 where a logit is not finite.
        margin: difference of the two largest logits, float64; the signed-distance estimate of a
            UGNN, and no distance for networks that are 1-Lipschitz alone.
        radius: l2 radius, in input units, within which the label is constant; float64, 0 for "no
            claim" (a tie, or a logit that is not finite).
        slack: what was subtracted from the margin for floating-point rounding.
    """

    label: Int[Tensor, " batch"]
    runner_up: Int[Tensor, " batch"]
    margin: Float[Tensor, " batch"]
    radius: Float[Tensor, " batch"]
    slack: Float[Tensor, " batch"]


def certificate_from_logits(
    logits: Float[Tensor, "batch c"],
    constants: Float[Tensor, "c c"],
    slack: Float[Tensor, " batch"] | None = None,
) -> Certificate:
    """Certificate of given logits and pair constants; differences are taken in float64.

    ``slack`` (default 0) is subtracted from every logit difference before the division.

    Label and runner-up come from one stable descending sort, so a tie lists the lower index
    first, as ``argmax`` does, and gets radius 0.
    """
    wide = logits.double()
    slack = torch.zeros_like(wide[:, 0]) if slack is None else slack
    finite = torch.isfinite(wide).all(1)
    order = wide.sort(dim=1, descending=True, stable=True).indices
    label, runner_up = order[:, 0], order[:, 1]
    differences = wide.gather(1, label[:, None]) - wide
    others = torch.ones_like(wide, dtype=torch.bool).scatter(1, label[:, None], False)
    pair = constants.to(wide.device, torch.float64)[label]
    radius = torch.where(others, (differences - slack[:, None]) / pair, torch.inf).min(1).values
    margin = differences.gather(1, runner_up[:, None]).squeeze(1)
    nothing = torch.zeros_like(radius)
    return Certificate(
        label=torch.where(finite, label, -1),
        runner_up=torch.where(finite, runner_up, -1),
        margin=torch.where(finite, margin, nothing),
        radius=torch.where(finite & (radius > 0), radius, nothing),
        slack=slack,
    )


def certify(frozen: FrozenNetwork, x: Float[Tensor, "batch *shape"]) -> Certificate:
    r"""Certify a batch: :math:`r = \min_{k \ne l} (f_l - f_k) / L_{lk}` with measured constants.

    Shapes: ``x (batch, *in_shape)``, any floating dtype. Radii are in the units of ``x``. No
    labels are needed. The stored weights are evaluated in float64: a float32 forward pass moves
    margins by about 1e-6, which is enough to place a point of another label inside the radius.
    Guarantee: no point closer than ``radius`` has another label when labels are decided in
    float64. ``slack = ROUNDING_ALLOWANCE * (1 + |x|)`` is subtracted for the rounding of that
    evaluation; it is an allowance far above every error seen, not a proved bound.

    Raises:
        ValueError: integer input, or another shape than the network's.

    Cost: one forward pass in float64 (and, once a network, the measurement of its constants).
    Source: the paper, section 4.3, observation on certifiable robustness.

    Example:
        >>> from unitmargin import UGNN, freeze
        >>> frozen = freeze(UGNN(in_shape=(1, 8, 8), n_classes=10))
        >>> bool((certify(frozen, torch.rand(3, 1, 8, 8)).radius >= 0).all())
        True
    """
    frozen.check_input(x)
    with torch.no_grad():
        logits = frozen.in_float64()(x.double())
    slack = ROUNDING_ALLOWANCE * (1.0 + x.double().flatten(1).norm(dim=1))
    return certificate_from_logits(logits, frozen.pair_constants(), slack)


@dataclass(frozen=True)
class ClosestAdversarial:
    """The closed-form closest adversarial point, and how well it hits the boundary.

    Attributes:
        point: ``x - (f_l - f_s) g / |g|^2`` with g the gradient of ``f_l - f_s``; dtype of x.
        remaining: margin of the original label left at ``point``; 0 means exactly on the boundary.
        flipped: whether the outward ray search found another label.
        flipped_point: first point on the ray with another label (``point`` where none was found).
        flipped_distance: its distance from x, float64; infinite where none was found.
    """

    point: Tensor
    remaining: Float[Tensor, " batch"]
    flipped: Bool[Tensor, " batch"]
    flipped_point: Tensor
    flipped_distance: Float[Tensor, " batch"]


def closest_adversarial(
    frozen: FrozenNetwork, x: Float[Tensor, "batch *shape"]
) -> ClosestAdversarial:
    r"""The closed form :math:`x^* = x - (f_l - f_s)\, \nabla (f_l - f_s)`, one backward pass.

    The step is divided by the squared gradient norm, which is 1 for a UGNN and 1/std^2 behind a
    scalar input normalisation. A search outward on the same ray then tells how far the first
    point with another label is; labels are decided by the network in float64.

    Shapes: ``x (batch, *in_shape)``; ``point`` and ``flipped_point`` alike.
    Cost: one forward and backward pass, then up to 72 forward passes in float64 for the ray.
    Source: the paper, section 3, observation on multi-class signed distance classifiers.
    """
    frozen.check_input(x)
    wide = frozen.in_float64()
    start = x.detach().double()
    probe = start.clone().requires_grad_(True)
    with torch.enable_grad():
        logits = wide(probe)
        values, classes = logits.topk(2, dim=1)
        (gradient,) = torch.autograd.grad((values[:, 0] - values[:, 1]).sum(), probe)
    margin = (values[:, 0] - values[:, 1]).detach()
    squared = gradient.flatten(1).square().sum(1)
    step = _rows(margin / squared.clamp_min(torch.finfo(torch.float64).tiny), x)
    label = classes[:, 0]
    with torch.no_grad():
        landed = wide(start - step * gradient)
        own = landed.gather(1, label[:, None])
        remaining = (own - landed.scatter(1, label[:, None], -torch.inf)).min(1).values
        reach, flipped = _first_flip(wide, start, step * gradient, label)
        flipped = flipped & torch.isfinite(logits).all(1)  # NaN has no label to lose
    move = _rows(torch.where(flipped, reach, 1.0), x) * (step * gradient)
    distance = torch.where(flipped, (start - (start - move)).flatten(1).norm(dim=1), torch.inf)
    return ClosestAdversarial(
        point=(start - step * gradient).to(x.dtype),
        remaining=remaining,
        flipped=flipped,
        flipped_point=start - move,
        flipped_distance=distance,
    )


def _rows(values: Tensor, like: Tensor) -> Tensor:
    return values.view(-1, *(1,) * (like.ndim - 1))


def _first_flip(
    network: FrozenNetwork, start: Tensor, move: Tensor, label: Tensor
) -> tuple[Tensor, Tensor]:
    """Smallest found factor t with another label at ``start - t * move``, and whether one exists.

    The outward search tries factors growing by ``RAY_GROWTH``; bisection then narrows the bracket.
    """
    low = torch.zeros_like(label, dtype=torch.float64)
    high = torch.full_like(low, torch.inf)
    factor = 0.9
    while factor < RAY_REACH:
        changed = network(start - factor * move).argmax(1) != label
        high = torch.where(changed & torch.isinf(high), factor, high)
        low = torch.where(torch.isinf(high), factor, low)
        factor *= RAY_GROWTH
    flipped = torch.isfinite(high)
    for _ in range(RAY_STEPS):
        middle = 0.5 * (low + torch.where(flipped, high, low))
        changed = network(start - _rows(middle, start) * move).argmax(1) != label
        high = torch.where(changed & flipped, middle, high)
        low = torch.where(changed | ~flipped, low, middle)
    return high, flipped
