"""The last stage of every search: confirm in float64 and move back to the boundary."""

import torch

from unitmargin.solvers.geometry import column
from unitmargin.solvers.problem import Problem

PUSHES = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
"""Relative outward moves tried on a point that float64 does not confirm; float32 evaluations err by
about 1e-7 of the logits' scale."""

BRACKET_TOLERANCE = 1e-9
"""Relative width at which a refinement stops: well below the tolerance promised by any solver."""

AIM, LARGEST_AIM = 0.1, 0.5
"""Distance from the threshold at which a secant aims, in units of the smaller height of its two
ends, and at most in units of the tolerance of the margin: a trial on either side in turn closes the
bracket from both ends."""

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
    for push in PUSHES:
        if len(rows) == 0:
            break
        points = problem.clamp(problem.start[rows] + moves * (1.0 + push))
        problem.margin(points, rows, wide=True)
        left = torch.isinf(problem.best_distance[rows])
        rows, moves = rows[left], moves[left]
    refine(problem, refinements)


def refine(problem: Problem, refinements: int) -> None:
    """Move the best points back to the boundary on their segments from x, in float64.

    A bracket of two points, before and behind the threshold ``margin = -tau``, is narrowed by
    secants through their heights (margin + tau). A row leaves when its bracket is narrow.
    """
    rows = torch.isfinite(problem.best_distance).nonzero().squeeze(1)
    moves = problem.best_point[rows] - problem.start[rows]
    tolerance = problem.tolerance[rows]
    low, high = torch.zeros_like(tolerance), torch.ones_like(tolerance)
    before = problem.margins[rows].min(1).values + tolerance
    behind = problem.best_margin[rows] + tolerance
    for step in range(refinements):
        chosen = (high - low > BRACKET_TOLERANCE).nonzero().squeeze(1)
        if len(chosen) == 0:
            return
        trial = 0.5 * (low + high)
        if step % HALVE_EVERY != HALVE_EVERY - 1:
            aim = torch.minimum(AIM * torch.minimum(before, -behind), LARGEST_AIM * tolerance)
            height = before - (aim if step % 2 else -aim)
            trial = low + (height / (before - behind)).clamp(0.0, 1.0) * (high - low)
        trial = trial[chosen]
        points = problem.clamp(problem.start[rows[chosen]] + column(trial) * moves[chosen])
        margin = problem.margin(points, rows[chosen], wide=True)
        crossed, height = margin <= -tolerance[chosen], margin + tolerance[chosen]
        far, near = chosen[crossed], chosen[~crossed]
        high[far], behind[far] = trial[crossed], height[crossed]
        low[near], before[near] = trial[~crossed], height[~crossed]
