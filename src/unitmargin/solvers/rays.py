"""Where to look first: the nearest class by linearisation, and searches on straight rays."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from unitmargin.solvers.geometry import column, linear_distance, ray_point, unit
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


LADDER = tuple(2.0**doubling for doubling in range(-3, 6))
"""Trial lengths of a ray search in units of the linearised distance, shortest first: it aims at the
first crossing."""

RAY_BISECTIONS = 17
"""Published resolution of the ray search, 2**-16 of the bracket."""


@dataclass(frozen=True)
class Rays:
    """Straight rays down the gradients at the samples ``rows``, for one class each or for all."""

    rows: Int64[Tensor, " rays"]
    classes: Int64[Tensor, " rays"] | None
    margins: Float64[Tensor, " rays"]
    gradients: Float64[Tensor, "rays features"]

    def margin(
        self, problem: Problem, chosen: Int64[Tensor, " chosen"], length: Float64[Tensor, " chosen"]
    ) -> Float64[Tensor, " chosen"]:
        """Margin at the given length on each chosen ray."""
        rows = self.rows[chosen]
        direction = -unit(self.gradients[chosen])
        points = ray_point(problem.start[rows], direction, column(length), problem.box)
        classes = None if self.classes is None else self.classes[chosen]
        return problem.margin(points, rows, classes)

    def floor(self, problem: Problem) -> Float64[Tensor, " rays"]:
        """Certified distance, 0 where none is known."""
        if self.classes is None:
            return problem.lower_bound()[self.rows]
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
        crossed = rays.margin(problem, chosen, middle) < 0.0
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
        crossed = rays.margin(problem, pending, length) < 0.0
        high[pending[crossed]] = length[crossed]
        low[pending[~crossed]] = length[~crossed]
        pending = pending[~crossed]
    return low, high
