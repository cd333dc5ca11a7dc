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
    unit,
)
from unitmargin.solvers.problem import Problem
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


def sphere_tracing(
    problem: Problem,
    *,
    steps: int = 30,
    n_candidates: int = 3,
    first_turn: float = 0.3,
    last_turn: float = 0.01,
) -> None:
    rows = problem.all_rows()
    for classes in nearest_classes(problem, n_candidates).unbind(1):
        bounds = problem.lower_bounds[rows, classes]
        promising = (bounds < problem.best_distance).nonzero().squeeze(1)
        if len(promising):
            path = _begin(problem, promising, classes[promising])
            _trace(problem, path, steps, first_turn, last_turn)


@dataclass(frozen=True)
class _Path:
    """Rays from some samples towards the boundary with one class each; ``floor``: certified."""

    rows: Int64[Tensor, " rows"]
    classes: Int64[Tensor, " rows"]
    direction: Float64[Tensor, "rows features"]
    radius: Float64[Tensor, "rows 1"]
    floor: Float64[Tensor, "rows 1"]

    def keep(self, kept: Bool[Tensor, " rows"]) -> Self:
        return replace(self, **{name: value[kept] for name, value in vars(self).items()})


def _begin(problem: Problem, rows: Tensor, classes: Tensor) -> _Path:
    margin, gradient = problem.slope(problem.start[rows], rows, classes)
    floor = column(problem.lower_bounds[rows, classes])
    radius = torch.maximum(floor, linear_distance(margin, gradient))
    return _Path(rows, classes, -unit(gradient), radius, floor)


def _trace(
    problem: Problem, path: _Path, steps: int, first_turn: float, last_turn: float
) -> None:
    for step in range(steps - 1):
        done = step / max(steps - 2, 1)
        turn = cosine_decay(first_turn, last_turn, done)
        overshoot = FIRST_OVERSHOOT + (LAST_OVERSHOOT - FIRST_OVERSHOOT) * done
        path, finished = _advance(problem, path, turn, overshoot)
        path = path.keep(~finished)
        if len(path.rows) == 0:
            return
    empty = path.keep(torch.isinf(problem.best_distance[path.rows]))
    walk_out(problem, empty.rows, empty.direction, empty.radius)


def _advance(
    problem: Problem, path: _Path, turn: float, overshoot: float
) -> tuple[_Path, Bool[Tensor, " rows"]]:
    """One evaluation, one turn and one new radius; and which rays are finished."""
    points = ray_point(problem.start[path.rows], path.direction, path.radius, problem.box)
    margin, gradient = problem.slope(points, path.rows, path.classes)
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
