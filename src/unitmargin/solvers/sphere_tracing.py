"""Polar sphere tracing: turn a ray towards the normal of the boundary while tracing its length."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from unitmargin.solvers.geometry import (
    column,
    cosine_decay,
    inner,
    linear_distance,
    norm,
    ray_point,
    ray_reach,
    unit,
)
from unitmargin.solvers.half_spaces import closest_in_half_spaces
from unitmargin.solvers.problem import Problem, outside_entries
from unitmargin.solvers.rays import nearest_classes, walk_out

FIRST_OVERSHOOT, LAST_OVERSHOOT = 1e-3, 1e-7
"""Relative outward move of each radius, so that a path crosses and does not only approach."""

CEILING = 1.0 - 1e-5
"""A path stays this far below the best radius found: only an improvement is worth a call."""

ALIGNED = 1e-4
"""Sine of the angle between ray and normal at which a path stops: the relative distance still to be
gained is of the order of its square."""

TOUCHING = 2e-3
"""Relative depth behind the boundary up to which an aligned path stops; the bisection that follows
every search does the rest."""

OPTIMAL = 1.0 + 1e-7
"""Ratio of the best distance to the certified bound at which nothing is left to gain."""

CUTS = 5
"""Linearisations that a path remembers: as many pieces of the boundary may meet at a corner."""

CORNER_SHARE = 4
"""One step in so many, the last ones, is a corner step."""


def sphere_tracing(
    problem: Problem,
    *,
    steps: int = 30,
    n_candidates: int = 3,
    first_turn: float = 0.3,
    last_turn: float = 0.01,
    _share=0.25, _cuts=5, _settle=1e-7,
) -> None:
    rows = problem.all_rows()
    for classes in nearest_classes(problem, n_candidates).unbind(1):
        bounds = problem.lower_bounds[rows, classes]
        promising = (bounds < problem.best_distance).nonzero().squeeze(1)
        if len(promising):
            path = _begin(problem, promising, classes[promising])
            _trace(problem, path, steps, first_turn, last_turn, _share, _cuts, _settle)


@dataclass(frozen=True)
class _Path:
    """Rays from some samples towards the boundary with one class each; ``floor``: certified."""

    rows: Int64[Tensor, " rows"]
    classes: Int64[Tensor, " rows"]
    direction: Float64[Tensor, "rows features"]
    radius: Float64[Tensor, "rows 1"]
    floor: Float64[Tensor, "rows 1"]
    normals: Tensor
    offsets: Tensor

    def keep(self, kept: Bool[Tensor, " rows"]) -> Self:
        return replace(self, **{name: value[kept] for name, value in vars(self).items()})

    def cut(self, gradient, offset, cuts):
        return replace(self, normals=torch.cat((self.normals, gradient[:, None]), 1)[:, -cuts:], offsets=torch.cat((self.offsets, offset), 1)[:, -cuts:])


def _begin(problem: Problem, rows: Tensor, classes: Tensor) -> _Path:
    margin, gradient = problem.slope(problem.start[rows], rows, classes)
    floor = column(problem.lower_bounds[rows, classes])
    radius = torch.maximum(floor, linear_distance(margin, gradient))
    return _Path(rows, classes, -unit(gradient), radius, floor, gradient[:, None], -column(margin))


def _trace(
    problem: Problem, path: _Path, steps: int, first_turn: float, last_turn: float, share, cuts, settle
) -> None:
    cs = round(share * steps)
    turns = steps - 1 - cs
    for step in range(turns):
        done = step / max(turns - 1, 1)
        turn = cosine_decay(first_turn, last_turn, done)
        overshoot = FIRST_OVERSHOOT + (LAST_OVERSHOOT - FIRST_OVERSHOOT) * done
        path, finished = _advance(problem, path, turn, overshoot, cuts)
        path = path.keep(~finished)
        if len(path.rows) == 0:
            return
    reach = path.radius if problem.box is None else ray_reach(problem.start[path.rows], path.direction, path.radius, problem.box)
    move = reach * path.direction
    for _ in range(cs):
        new, path = _corner(problem, path, move, cuts)
        kept = (norm(new - move) > settle * norm(move)).squeeze(1)
        path, move = path.keep(kept), new[kept]
        if len(path.rows) == 0:
            break
    empty = path.keep(torch.isinf(problem.best_distance[path.rows]))
    walk_out(problem, empty.rows, empty.direction, empty.radius)


def _advance(
    problem: Problem, path: _Path, turn: float, overshoot: float, cuts
) -> tuple[_Path, Bool[Tensor, " rows"]]:
    """One evaluation, one turn and one new radius; and which rays are finished."""
    start = problem.start[path.rows]
    points = ray_point(start, path.direction, path.radius, problem.box)
    margin, gradient = problem.slope(points, path.rows, path.classes)
    path = path.cut(gradient, inner(gradient, points - start) - column(margin), cuts)
    move = linear_distance(margin, gradient)
    normal = -unit(gradient)
    sideways = normal - inner(normal, path.direction) * path.direction
    best = column(problem.best_distance[path.rows])
    crossed = (best * CEILING**2 <= path.radius) & (move >= -TOUCHING * path.radius)
    finished = crossed & (norm(sideways) <= ALIGNED)
    finished |= best <= OPTIMAL * path.floor
    radius = torch.minimum((path.radius + move) * (1.0 + overshoot), CEILING * best)
    direction = unit(path.direction + turn * sideways)
    following = replace(path, direction=direction, radius=torch.maximum(radius, path.floor))
    return following, finished.squeeze(1)


def _corner(problem, path, move, cuts):
    start = problem.start[path.rows]
    beyond = outside_entries(start + move, problem.box)
    fixed = torch.where(beyond, problem.clamp(start + move) - start, 0.0)
    offsets = path.offsets - (path.normals @ fixed[:, :, None]).squeeze(2)
    free = torch.where(beyond[:, None], 0.0, path.normals)
    multipliers = closest_in_half_spaces(free, offsets)
    move = -(multipliers[:, None] @ path.normals).squeeze(1) * (1 + LAST_OVERSHOOT)
    points = problem.clamp(start + move)
    margin, gradient = problem.slope(points, path.rows, path.classes)
    return move, path.cut(gradient, inner(gradient, points - start) - column(margin), cuts)
