"""The last stage of every search: confirm in float64 and move back to the boundary."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from unitmargin.solvers.geometry import column
from unitmargin.solvers.problem import Problem

PUSHES = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
"""Relative outward moves tried on a point that float64 does not confirm; float32 evaluations err by
about 1e-7 of the logits' scale."""

BRACKET_TOLERANCE = 1e-9
"""Relative width at which a refinement stops: well below the tolerance promised by any solver."""

AIM = 2.0
"""Depth behind the boundary at which a refinement aims, in units of the tolerance of the margin."""

NEAR = 4.0
"""Depth, in the same units, at which there is nothing left to refine."""

HALVE_EVERY = 3
"""One refinement in so many halves the bracket, so that a bent margin cannot stall the others."""


def land(problem: Problem, refinements: int) -> None:
    """Make every best point a confirmed one, as close to x as its segment from x allows.

    Points that no outward push makes adversarial in float64 are dropped: their distance becomes
    infinite. Cost: 1 to 7 float64 forward passes, then at most ``refinements``, usually 5.
    """
    rows = torch.isfinite(problem.best_distance).nonzero().squeeze(1)
    moves = problem.best_point[rows] - problem.start[rows]
    problem.best_distance[rows] = torch.inf
    pending = rows
    for push in PUSHES:
        if len(pending) == 0:
            break
        confirm(problem, pending, moves[torch.isin(rows, pending)] * (1.0 + push))
        pending = pending[torch.isinf(problem.best_distance[pending])]
    rows = torch.isfinite(problem.best_distance).nonzero().squeeze(1)
    refine(problem, rows, refinements)


def confirm(
    problem: Problem,
    rows: Int64[Tensor, " rows"],
    moves: Float64[Tensor, "rows features"],
) -> tuple[Float64[Tensor, " rows"], Bool[Tensor, " rows"]]:
    """Margin of ``x + move`` in float64, and whether the point counts as adversarial."""
    margins = problem.margin(problem.clamp(problem.start[rows] + moves), rows, wide=True)
    return margins, margins <= -problem.tolerance[rows]


@dataclass
class _Bracket:
    """Two points on a segment from x, before and behind the boundary, with their heights.

    ``height`` is the margin plus the aimed depth; the secant through both heights is the next
    trial. A height that stays while the other end moves twice is halved (the Illinois rule).
    """

    low: Float64[Tensor, " rows"]
    high: Float64[Tensor, " rows"]
    low_height: Float64[Tensor, " rows"]
    high_height: Float64[Tensor, " rows"]
    last_moved: Int64[Tensor, " rows"]

    def trial(self, halve: bool) -> Float64[Tensor, " rows"]:
        if halve:
            return 0.5 * (self.low + self.high)
        share = self.low_height / (self.low_height - self.high_height)
        return self.low + share.clamp(0.0, 1.0) * (self.high - self.low)

    def narrow(
        self,
        chosen: Int64[Tensor, " chosen"],
        trial: Float64[Tensor, " chosen"],
        height: Float64[Tensor, " chosen"],
        crossed: Bool[Tensor, " chosen"],
    ) -> None:
        """Replace one end of the chosen brackets."""
        inside, outside = chosen[crossed], chosen[~crossed]
        self.high[inside], self.high_height[inside] = trial[crossed], height[crossed]
        self.low[outside], self.low_height[outside] = trial[~crossed], height[~crossed]
        self.low_height[inside] *= torch.where(self.last_moved[inside] > 0, 0.5, 1.0)
        self.high_height[outside] *= torch.where(self.last_moved[outside] < 0, 0.5, 1.0)
        self.last_moved[inside], self.last_moved[outside] = 1, -1


def refine(problem: Problem, rows: Int64[Tensor, " rows"], refinements: int) -> None:
    """Move the best points back to the boundary on their segments from x, in float64.

    A row leaves as soon as its bracket is narrow or its point is on the boundary.
    """
    moves = problem.best_point[rows] - problem.start[rows]
    aim = AIM * problem.tolerance[rows]
    bracket = _Bracket(
        low=torch.zeros_like(aim),
        high=torch.ones_like(aim),
        low_height=problem.margins[rows].min(1).values + aim,
        high_height=problem.best_margin[rows] + aim,
        last_moved=torch.zeros_like(rows),
    )
    for step in range(refinements):
        wide = bracket.high - bracket.low > BRACKET_TOLERANCE
        chosen = (wide & (bracket.high_height < aim - NEAR * problem.tolerance[rows])).nonzero()
        chosen = chosen.squeeze(1)
        if len(chosen) == 0:
            return
        trial = bracket.trial(halve=step % HALVE_EVERY == HALVE_EVERY - 1)[chosen]
        margin, crossed = confirm(problem, rows[chosen], column(trial) * moves[chosen])
        bracket.narrow(chosen, trial, margin + aim[chosen], crossed)
