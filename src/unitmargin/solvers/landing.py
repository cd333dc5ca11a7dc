"""The last stage of every search: confirm in float64 and move back to the boundary."""

import torch

from unitmargin.solvers.bracket import Bracket
from unitmargin.solvers.geometry import Mask, Rows, Values, column
from unitmargin.solvers.problem import Problem

PUSHES = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
"""Relative outward moves tried on a point that float64 does not confirm; float32 evaluations err by
about 1e-7 of the logits' scale."""

BRACKET_TOLERANCE = 1e-9
"""Relative width at which a refinement stops: well below the tolerance promised by any solver."""

LARGEST_AIM = 0.5
"""Distance from the threshold at which a secant aims at most, in units of the tolerance of the
margin."""


def land(problem: Problem, refinements: int) -> None:
    """Make every best point a confirmed one, as close to x as its segment from x allows.

    Points that no outward push makes adversarial in float64 are dropped: their distance becomes
    infinite. Cost: 1 to 7 float64 forward passes, then at most ``refinements``, usually 5.
    """
    rows = torch.isfinite(problem.best_distance).nonzero().squeeze(1)
    moves = problem.best_point[rows] - problem.start[rows]
    problem.best_distance[rows] = torch.inf
    for push in PUSHES:
        if len(rows) == 0:
            break
        points = problem.clamp(problem.start[rows] + moves * (1.0 + push))
        problem.margin(points, rows, wide=True)
        left = torch.isinf(problem.best_distance[rows])
        rows, moves = rows[left], moves[left]
    refine(problem, refinements)


def refine(problem: Problem, refinements: int) -> None:
    """Move the best points back to the threshold ``margin = -tau`` on their segments from x."""
    rows = torch.isfinite(problem.best_distance).nonzero().squeeze(1)
    moves = problem.best_point[rows] - problem.start[rows]
    tolerance = problem.tolerance[rows]

    def trial(factor: Values, chosen: Rows) -> tuple[Values, Mask]:
        moved = problem.start[rows[chosen]] + column(factor) * moves[chosen]
        margin = problem.margin(problem.clamp(moved), rows[chosen], wide=True)
        return margin + tolerance[chosen], margin <= -tolerance[chosen]

    bracket = Bracket(
        low=torch.zeros_like(tolerance),
        high=torch.ones_like(tolerance),
        before=problem.margins[rows].min(1).values + tolerance,
        behind=problem.best_margin[rows] + tolerance,
        largest_aim=LARGEST_AIM * tolerance,
    )
    bracket.narrow(trial, refinements, BRACKET_TOLERANCE)
