"""The last stage of every search: confirm in float64 and move back to the boundary."""

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from unitmargin.solvers.geometry import column
from unitmargin.solvers.problem import Problem, outside_entries

PUSHES = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
"""Relative outward moves tried on a point that float64 does not confirm; float32 evaluations err by
about 1e-7 of the logits' scale."""

BRACKET_TOLERANCE = 1e-9
"""Relative width at which a bisection stops: well below the tolerance promised by any solver."""

BOUND_SLACK = 1e-9
"""Relative amount by which a bracket starts below the certified bound, above its rounding."""


def land(problem: Problem, bisections: int) -> None:
    """Make every best point a confirmed one, as close as bisection of its segment brings it.

    Points that no outward push makes adversarial in float64 are dropped: their distance becomes
    infinite. Cost: 1 to 7 float64 forward passes, then at most ``bisections``.
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
    bisect(problem, rows, problem.best_point[rows] - problem.start[rows], bisections)


def confirm(
    problem: Problem,
    rows: Int64[Tensor, " rows"],
    moves: Float64[Tensor, "rows features"],
) -> Bool[Tensor, " rows"]:
    """Evaluate ``x + move`` in float64; whether it is adversarial, finite and in the box."""
    points = problem.clamp(problem.start[rows] + moves)
    margins = problem.margin(points, rows, wide=True)
    return (margins <= -problem.tolerance[rows]) & ~outside_entries(points, problem.box).any(1)


def bisect(
    problem: Problem,
    rows: Int64[Tensor, " rows"],
    moves: Float64[Tensor, "rows features"],
    bisections: int,
) -> None:
    """Halve the segment from x to the adversarial ``x + move``, in float64.

    The bracket starts at the certified distance where one is known, at x where none is; a row
    leaves as soon as its bracket is narrow.
    """
    lengths = torch.linalg.vector_norm(moves, dim=1)
    low = (1.0 - BOUND_SLACK) * problem.lower_bound()[rows] / lengths
    low, high = low.clamp(0.0, 1.0), torch.ones_like(lengths)
    for _ in range(bisections):
        active = (high - low > BRACKET_TOLERANCE).nonzero().squeeze(1)
        if len(active) == 0:
            break
        middle = 0.5 * (low[active] + high[active])
        crossed = confirm(problem, rows[active], column(middle) * moves[active])
        high[active] = torch.where(crossed, middle, high[active])
        low[active] = torch.where(crossed, low[active], middle)
