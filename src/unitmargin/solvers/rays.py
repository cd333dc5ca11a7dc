"""Where to look first: the nearest class by linearisation, and a walk along one ray."""

import torch
from jaxtyping import Int64
from torch import Tensor

from unitmargin.solvers.geometry import Column, Rows, Values, Vectors, norm, ray_point
from unitmargin.solvers.problem import Problem

SHORTLIST = 10
"""Classes, first in certified distance and then in margin, of which the gradient may be taken."""

WALK = (0.0, *(1e-3 * 2.0**doubling for doubling in range(14)))
"""Relative outward moves of a walk that starts at a good guess; the last one reaches 9 times it."""


def rank_classes(
    problem: Problem, n_candidates: int
) -> tuple[Int64[Tensor, "rows candidates"], Values, Vectors]:
    """The other classes, nearest first; margin at the start against the first, and its gradient.

    The order is by linearised distance, of classes without one by certified distance. The
    linearised distance of a class is never below its certified one, so a gradient is taken only
    while the certified distance is below the best linearised one: once on a tight certificate, for
    each of up to ten classes where nothing is certified.
    """
    ranked = problem.rivals()[:, : max(SHORTLIST, n_candidates)]
    bounds = problem.lower_bounds.gather(1, ranked)
    distances = torch.full_like(bounds, torch.inf)
    margin = problem.margins.gather(1, ranked[:, :1]).squeeze(1)
    gradient, nearest = torch.zeros_like(problem.start), torch.full_like(margin, torch.inf)
    for rank in range(ranked.shape[1]):
        rows = (bounds[:, rank] < nearest).nonzero().squeeze(1)
        if len(rows) == 0:
            break
        value, slope = problem.slope(problem.start[rows], rows, ranked[rows, rank])
        length = norm(slope).squeeze(1)
        distances[rows, rank] = torch.where(length > 0, value / length, torch.inf)
        closer = distances[rows, rank] < nearest[rows]
        nearest[rows[closer]] = distances[rows[closer], rank]
        margin[rows[closer]], gradient[rows[closer]] = value[closer], slope[closer]
    order = distances.argsort(dim=1, stable=True)
    return ranked.gather(1, order)[:, :n_candidates], margin, gradient


def walk_out(problem: Problem, rows: Rows, direction: Vectors, length: Column) -> None:
    """Evaluate growing lengths on each ray until it meets an adversarial point.

    Cost: at most 15 forward passes; a row leaves as soon as it has crossed.
    """
    for growth in WALK:
        if len(rows) == 0:
            return
        points = ray_point(problem.start[rows], direction, length * (1.0 + growth), problem.box)
        left = problem.margin(points, rows) > -problem.tolerance[rows]
        rows, direction, length = rows[left], direction[left], length[left]
