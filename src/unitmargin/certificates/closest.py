"""The closed-form closest adversarial point, and the first flip on its ray."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unitmargin.certificates.boundary import Mask, Values, move_to_boundary, spread_over
from unitmargin.certificates.inputs import require_inputs
from unitmargin.foundation.numbers import Numbers
from unitmargin.frozen import FixedNetwork, FrozenNetwork
from unitmargin.layers.margin import margins
from unitmargin.solvers.bracket import Bracket

RAY_TRIALS = 150
"""Trials of the crossing, at most: the third of them that halve find it alone. Usually 8."""

RAY_WIDTH = 1e-12
"""Width of the bracket of the crossing, in units of the move to the boundary."""

RAY_TOLERANCE = 1e-13
"""Margin, in units of max(1, largest logit), beyond which another label counts: a batch of another
size rounds by less, so that whoever evaluates the point finds that label."""

RAY_GROWTH = 1.1
"""Factor between the trial points of the outward search."""

RAY_REACH = 3.0
"""How far outward the ray is searched, in units of the move that is expected to flip the label."""


@dataclass(frozen=True, eq=False)
class ClosestAdversarial:
    """The closed-form closest adversarial point, and how well it hits the boundary.

    Attributes:
        point: ``x - (f_l - f_s) g / |g|^2`` with g the gradient of ``f_l - f_s``; dtype of x.
        remaining: margin of the original label left at that point in float64, before ``point`` is
            rounded to the dtype of x; 0 means exactly on the boundary.
        flipped: whether the outward ray search found another label.
        flipped_point: first point on the ray with another label (``point`` where none was found).
        flipped_distance: its distance from x, float64; infinite where none was found.
    """

    point: Tensor
    remaining: Values
    flipped: Mask
    flipped_point: Tensor
    flipped_distance: Values


def closest_adversarial(
    frozen: FrozenNetwork, x: Numbers, domain: str = "model"
) -> ClosestAdversarial:
    r"""The closed form :math:`x^* = x - (f_l - f_s)\, \nabla (f_l - f_s)`, one backward pass.

    The step is divided by the squared gradient norm, which is 1 for a UGNN and 1/std^2 behind a
    scalar input normalisation. A search outward on the same ray then tells how far the first
    point with another label is; labels are decided by the network in float64.

    Shapes: ``x (batch, *in_shape)``, a tensor, NumPy array or data frame; ``point`` and
    ``flipped_point`` alike. ``domain`` says where x may lie, as in :func:`certify`; its points may
    lie anywhere.
    Raises:
        TypeError: a model that is not frozen, or ``x`` that is no tensor, array or data frame.
        ValueError: integer input, another shape or device than the network's, or entries outside
            of its domain.

    Cost: one forward and backward pass, then forward passes in float64 for the ray: 11 in the
    median of a trained UGNN's inputs, at most 163.
    Source: the paper, section 3, observation on multi-class signed distance classifiers.
    """
    given = require_inputs(frozen, x, domain)
    wide = frozen.in_float64()
    start = given.double()
    if not len(start):  # no gradient flows through nothing
        none = start.new_zeros(0)
        return ClosestAdversarial(given, none, none.bool(), start, none)
    logits, label, move = move_to_boundary(wide, start)
    with torch.no_grad():
        remaining = margins(wide(start + move), label)
        reach, flipped = _first_flip(wide, start, move, label, logits)
    flipped = flipped & torch.isfinite(logits).all(1)  # NaN has no label to lose
    flipped_point = start + spread_over(torch.where(flipped, reach, 1.0), start) * move
    distance = (flipped_point - start).flatten(1).norm(dim=1)
    return ClosestAdversarial(
        point=(start + move).to(given.dtype),
        remaining=remaining,
        flipped=flipped,
        flipped_point=flipped_point,
        flipped_distance=torch.where(flipped, distance, torch.inf),
    )


def _first_flip(
    network: FixedNetwork, start: Tensor, move: Tensor, label: Tensor, logits: Tensor
) -> tuple[Tensor, Mask]:
    """Smallest found factor t with another label at ``start + t * move``, and whether one exists.

    The outward search tries factors growing by ``RAY_GROWTH``; the bracket is narrowed then.
    """
    tolerance = RAY_TOLERANCE * logits.abs().max(1).values.clamp_min(1.0)

    def trial(factor: Tensor, rows: Tensor) -> tuple[Tensor, Mask]:
        moved = start[rows] + spread_over(factor, start) * move[rows]
        height = margins(network(moved), label[rows]) + tolerance[rows]
        return height, height <= 0.0

    before = margins(logits, label) + tolerance
    low, behind = torch.zeros_like(before), torch.zeros_like(before)
    high = torch.full_like(before, torch.inf)
    factor = 0.9
    while factor < RAY_REACH and bool(torch.isinf(high).any()):
        rows = torch.isinf(high).nonzero().squeeze(1)
        height, crossed = trial(torch.full_like(before[rows], factor), rows)
        high[rows[crossed]], behind[rows[crossed]] = factor, height[crossed]
        low[rows[~crossed]], before[rows[~crossed]] = factor, height[~crossed]
        factor *= RAY_GROWTH
    flipped = torch.isfinite(high)
    bracket = Bracket(low, torch.where(flipped, high, low), before, behind, 0.5 * tolerance)
    bracket.narrow(trial, RAY_TRIALS, RAY_WIDTH)
    return bracket.high, flipped
