"""Where to look first: the nearest class by linearisation, and searches outward on straight rays."""

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from unitmargin.solvers.geometry import ray_point
from unitmargin.solvers.problem import Problem

SHORTLIST = 10
"""Classes of smallest margin whose linearised distances are compared where none is certified."""

WALK = (0.0, *(1e-3 * 2.0**doubling for doubling in range(14)))
"""Relative outward moves of a walk that starts at a good guess; the last one reaches 9 times it."""


def nearest_classes(problem: Problem, n_candidates: int) -> Int64[Tensor, "batch candidates"]:
    """The other classes whose boundaries are likely to be nearest, nearest first.

    Ordered by certified distance where constants are known. Otherwise the ten classes of smallest
    margin are ordered by linearised distance, one backward pass each: the margin alone is a poor
    guide where gradients of different classes differ in length.
    """
    n_candidates = min(n_candidates, problem.n_classes - 1)
    ranked = problem.rivals()
    if problem.certified or problem.n_classes == 2:
        return ranked[:, :n_candidates]
    ranked = ranked[:, : max(SHORTLIST, n_candidates)]
    margins, gradients = problem.pair_slopes(problem.start, problem.all_rows(), ranked)
    lengths = torch.linalg.vector_norm(gradients, dim=2)
    distances = torch.where(lengths > 0, margins / lengths, torch.inf)
    order = distances.argsort(dim=1, stable=True)[:, :n_candidates]
    return ranked.gather(1, order)


def first_slope(
    problem: Problem,
) -> tuple[Float64[Tensor, " batch"], Float64[Tensor, "batch features"]]:
    """Margin at the start against the class that is likely to be nearest, and its gradient."""
    classes = nearest_classes(problem, 1)[:, 0]
    return problem.slope(problem.start, problem.all_rows(), classes)


def walk_out(
    problem: Problem,
    rows: Int64[Tensor, " rows"],
    direction: Float64[Tensor, "rows features"],
    radius: Float64[Tensor, "rows 1"],
) -> None:
    """Evaluate growing radii on each ray until it meets an adversarial point.

    Cost: at most 15 forward passes; a row leaves as soon as it has crossed.
    """
    pending = torch.arange(len(rows), device=rows.device)
    for growth in WALK:
        if len(pending) == 0:
            return
        start = problem.start[rows[pending]]
        reach = radius[pending] * (1.0 + growth)
        points = ray_point(start, direction[pending], reach, problem.box)
        margin = problem.margin(points, rows[pending])
        pending = pending[margin > -problem.tolerance[rows[pending]]]
