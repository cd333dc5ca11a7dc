"""Where to look first: the nearest class by linearisation, and searches on straight rays."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from unitmargin.solvers.geometry import (
    Column,
    Rows,
    Vectors,
    column,
    linear_distance,
    norm,
    ray_point,
    unit,
)
from unitmargin.solvers.problem import Problem

SHORTLIST = 10
"""Classes, first in certified distance and then in margin, of which the gradient may be taken."""

WALK = (0.0, *(1e-3 * 2.0**doubling for doubling in range(14)))
"""Relative outward moves of a walk that starts at a good guess; the last one reaches 9 times it."""


@dataclass(frozen=True)
class Ranking:
    """Other classes in the order in which they are worth trying.

    Attributes:
        classes: nearest first.
        margin, gradient: margin at the start against the first class, and its gradient.
    """

    classes: Int64[Tensor, "batch candidates"]
    margin: Float64[Tensor, " batch"]
    gradient: Float64[Tensor, "batch features"]


def rank_classes(problem: Problem, n_candidates: int) -> Ranking:
    """Order the other classes by linearised distance, and those without one by certified distance.

    The linearised distance of a class is never below its certified one, so a gradient is taken only
    while the certified distance is below the best linearised one: once on a tight certificate, for
    each of ten classes where nothing is certified.
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
    return Ranking(ranked.gather(1, order)[:, :n_candidates], margin, gradient)


def walk_out(problem: Problem, rows: Rows, direction: Vectors, length: Column) -> None:
    """Evaluate growing lengths on each ray until it meets an adversarial point.

    Cost: at most 15 forward passes; a row leaves as soon as it has crossed.
    """
    pending = torch.arange(len(rows), device=rows.device)
    for growth in WALK:
        if len(pending) == 0:
            return
        start = problem.start[rows[pending]]
        reach = length[pending] * (1.0 + growth)
        points = ray_point(start, direction[pending], reach, problem.box)
        margin = problem.margin(points, rows[pending])
        pending = pending[margin > -problem.tolerance[rows[pending]]]


LADDER = tuple(1.001 * 2.0**doubling for doubling in range(-3, 6))
"""Trial lengths of a ray search in units of the linearised distance, shortest first: it aims at the
first crossing. The factor 1.001 lets a trial cross a boundary that is exactly linear."""

RAY_BISECTIONS = 17
"""Published resolution of the ray search, 2**-16 of the bracket."""


@dataclass(frozen=True)
class Rays:
    """Straight rays down the gradients at the samples ``rows``, for one class each or for all."""

    rows: Int64[Tensor, " rays"]
    classes: Int64[Tensor, " rays"] | None
    margins: Float64[Tensor, " rays"]
    gradients: Float64[Tensor, "rays features"]

    def crossed(
        self, problem: Problem, chosen: Int64[Tensor, " chosen"], length: Float64[Tensor, " chosen"]
    ) -> Bool[Tensor, " chosen"]:
        """Whether each chosen ray is behind its boundary at the given length."""
        rows = self.rows[chosen]
        direction = -unit(self.gradients[chosen])
        points = ray_point(problem.start[rows], direction, column(length), problem.box)
        classes = None if self.classes is None else self.classes[chosen]
        return problem.margin(points, rows, classes) <= -problem.tolerance[rows]

    def floor(self, problem: Problem) -> Float64[Tensor, " rays"]:
        """Certified distance, 0 where none is known."""
        if self.classes is None:
            return problem.lower_bounds.min(1).values[self.rows]
        return problem.lower_bounds[self.rows, self.classes]


def search_rays(problem: Problem, rays: Rays) -> None:
    """Bracket the first crossing of every ray on a ladder of lengths, then bisect it.

    A ray is dropped as soon as its bracket lies beyond the shortest crossing of its sample.
    """
    low, high = _bracket(problem, rays)
    for _ in range(RAY_BISECTIONS):
        shortest = torch.full_like(problem.best_distance, torch.inf)
        shortest = shortest.scatter_reduce(0, rays.rows, high, "amin")
        useful = torch.isfinite(high) & (low < shortest[rays.rows])
        chosen = useful.nonzero().squeeze(1)
        if len(chosen) == 0:
            return
        middle = 0.5 * (low[chosen] + high[chosen])
        crossed = rays.crossed(problem, chosen, middle)
        high[chosen] = torch.where(crossed, middle, high[chosen])
        low[chosen] = torch.where(crossed, low[chosen], middle)


def _bracket(
    problem: Problem, rays: Rays
) -> tuple[Float64[Tensor, " rays"], Float64[Tensor, " rays"]]:
    """Longest length before and shortest length behind the crossing; infinite if there is none."""
    guess = linear_distance(rays.margins, rays.gradients).squeeze(1)
    floor = rays.floor(problem)
    low, high = floor.clone(), torch.full_like(guess, torch.inf)
    pending = (guess > 0.0).nonzero().squeeze(1)
    for factor in LADDER:
        if len(pending) == 0:
            break
        length = torch.maximum(floor, factor * guess)[pending]
        crossed = rays.crossed(problem, pending, length)
        high[pending[crossed]] = length[crossed]
        low[pending[~crossed]] = length[~crossed]
        pending = pending[~crossed]
    return low, high
