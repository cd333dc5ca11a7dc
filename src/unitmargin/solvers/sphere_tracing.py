"""Polar sphere tracing: turn a ray towards the normal of the boundary while tracing its length."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from unitmargin.solvers.geometry import (
    Column,
    Mask,
    Rows,
    Stack,
    Table,
    Values,
    Vectors,
    column,
    inner,
    linear_distance,
    norm,
    ray_point,
    ray_reach,
    unit,
)
from unitmargin.solvers.half_spaces import closest_in_half_spaces
from unitmargin.solvers.problem import Problem
from unitmargin.solvers.rays import rank_classes, walk_out

FIRST_OVERSHOOT, LAST_OVERSHOOT = 1e-3, 1e-7
"""Relative outward move of each length, so that a path crosses and does not only approach."""

CEILING = 1.0 - 1e-5
"""A path stays this far below the best length found: only an improvement is worth a call."""

ALIGNED = 1e-4
"""Sine of the angle between ray and normal at which a path stops: the relative distance still to be
gained is of the order of its square."""

ALIGNED_OVERSHOOT, TOUCHING = 1e-6, 1e-5
"""Relative outward move of an aligned path, above float32 rounding; and relative depth behind the
boundary up to which it stops. The refinement that follows every search does the rest."""

OPTIMAL = 1.0 + 1e-7
"""Ratio of the best distance to the certified one at which nothing is left to gain."""

CUTS = 5
"""Linearisations that a path remembers: as many pieces of the boundary may meet at a corner."""

CORNER_SHARE = 6
"""Of so many steps one is a corner step, after the first six; they come last, when the pieces of
the boundary near the end are known."""

TURNS_A_MEAN, LONGEST_MEAN = 12, 2.0
"""A turn is a running mean over one step for every twelve turns, over two steps at most: a mean
lags behind, which a short path cannot afford, and a longer one ends farther away on UGNNs."""

FEW_ENTRIES = 8
"""Inputs of at most so many entries are searched from both ends of every axis as well. A ray turns
into the nearest valley of the distance: on networks of the plane another one was up to three times
closer for one point in eight, and none after these rays. Images have no such ends to spare."""

SETTLED = 1e-7
"""Relative change of a corner step's proposal at which a path stops."""

CORNER_OVERSHOOT, OVERSHOOT_GROWTH = 1e-7, 4.0
"""Relative outward move of the first corner step, and its growth from each one to the next: a ray
may only graze the pieces that meet at a corner."""


def sphere_tracing(
    problem: Problem,
    *,
    steps: int = 30,
    n_candidates: int = 3,
    first_turn: float = 0.4,
    last_turn: float = 0.003,
) -> None:
    r"""Polar sphere tracing: the default, and the fastest way to the boundary of a UGNN.

    For the margin M against one class, with gradient g, a ray from x with direction u and length r:

    .. math:: u \leftarrow \frac{u + a\,s}{\|\cdot\|},
        \quad s = \overline{n - \langle n, u\rangle u}, \quad n = -\frac{g}{\|g\|},
        \qquad r \leftarrow r + \frac{M}{\|g\|},
        \qquad p = \mathrm{clamp}(x + t u), \; \|p - x\| = r.

    The bar is a running mean over the steps: the pieces of the boundary are small, and the normal
    of one of them says less than that of several.

    :math:`u = n` with M = 0 is the optimality condition of the problem, with a box as without.
    Where the margin is 1-Lipschitz with unit gradients, r + M never skips a boundary on the ray:
    the ball of radius M around p is safe. About the last seventh of the steps looks for corners,
    where several pieces of the boundary meet and no single normal is the answer: the next point is
    the closest to x that satisfies the last five linearisations at once.

    Certified distances of a :class:`FrozenNetwork` order the classes, drop every class that cannot
    be closer than the best point, bound r from below and stop a path that has reached the bound.
    For any other module nothing is certified: the moves are those of a linearisation, classes are
    ordered by linearised distance, and no class is dropped.

    Of inputs of at most eight entries the search also starts at both ends of every axis.

    Args:
        steps: evaluations for each class and start, until a point is found.
        n_candidates: classes tried, nearest first.
        first_turn, last_turn: a, decaying with the square of the share of turns left.

    Guarantee: within 1e-5 of the true distance on the closed-form classifiers of the tests, in
    float32 and float64; elsewhere an upper bound, on tables of 12 to 30 columns 0 % to 6 % above
    the closest of searches from both ends of every axis, in the mean.
    Cost: at most ``steps`` forward and backward passes for each class that is not dropped, and of
    a sample that has no point by then up to 15 forward passes more; of n <= 8 entries 2n + 1 times
    as many, for the first ray and both ends of every axis; before all 1 to 10 gradients that order
    the classes, or ``n_candidates`` of more.
    Source: this project; theory in docs/theory.md.

    Example:
        >>> from unitmargin.solvers import minimal_perturbation
        >>> x, label = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
        >>> found = minimal_perturbation(torch.nn.Identity(), x, label, "sphere_tracing")
        >>> abs(float(found.distance) - 2**0.5) < 1e-8
        True
    """
    follow = partial(_follow, problem, steps=steps, first_turn=first_turn, last_turn=last_turn)
    ranking, margin, gradient = rank_classes(problem, n_candidates)
    rows = every = problem.all_rows()
    for rank, classes in enumerate(ranking.unbind(1)):
        bounds = problem.lower_bounds[every, classes]
        if rank > 0:
            rows = (bounds < problem.best_distance).nonzero().squeeze(1)
            if len(rows) == 0:
                continue
            margin, gradient = problem.slope(problem.start[rows], rows, classes[rows])
        length = torch.maximum(column(bounds[rows]), linear_distance(margin, gradient))
        ray = -unit(gradient), length
        follow(_begin(problem, rows, classes[rows], margin, gradient, *ray))
        for axis in _axes(problem):
            rows = (OPTIMAL * bounds < problem.best_distance).nonzero().squeeze(1)
            if len(rows) == 0:
                break
            margin, gradient = problem.slope(problem.start[rows], rows, classes[rows])
            ray = axis.expand_as(gradient), column(bounds[rows])
            follow(_begin(problem, rows, classes[rows], margin, gradient, *ray))


@dataclass(frozen=True)
class _Path:
    """Rays towards the boundary with one class each, and the last linearisations along them.

    ``sideways`` is the running mean s before its division by the sum of its weights; ``floor`` is
    the certified distance; ``normals`` g and ``offsets`` b say that the linearised margin is
    negative where ``g (p - x) <= b``.
    """

    rows: Rows
    classes: Rows
    direction: Vectors
    sideways: Vectors
    length: Column
    floor: Column
    normals: Stack
    offsets: Table

    def keep(self, kept: Mask) -> "_Path":
        return replace(self, **{name: value[kept] for name, value in vars(self).items()})

    def remember(self, move: Vectors, margin: Values, gradient: Vectors) -> "_Path":
        offset = inner(gradient, move) - column(margin)
        normals = torch.cat((self.normals, gradient[:, None]), dim=1)[:, -CUTS:]
        offsets = torch.cat((self.offsets, offset), dim=1)[:, -CUTS:]
        return replace(self, normals=normals, offsets=offsets)


def _axes(problem: Problem) -> Iterable[Values]:
    """Both ends of every axis where a point has few entries."""
    entries = problem.start.shape[1]
    ends = torch.eye(entries if entries <= FEW_ENTRIES else 0, entries).to(problem.start)
    return torch.cat((ends, -ends))


def _begin(
    problem: Problem,
    rows: Rows,
    classes: Rows,
    margin: Values,
    gradient: Vectors,
    direction: Vectors,
    length: Column,
) -> _Path:
    """Rays from the samples, where margin and gradient are known, towards one class each."""
    return _Path(
        rows=rows,
        classes=classes,
        direction=direction,
        sideways=torch.zeros_like(gradient),
        length=length,
        floor=column(problem.lower_bounds[rows, classes]),
        normals=gradient[:, None],
        offsets=-column(margin),
    )


def _follow(problem: Problem, path: _Path, steps: int, first_turn: float, last_turn: float) -> None:
    """Turns, then corner steps; rows that never crossed walk on along their last ray."""
    corner_steps = max(steps // CORNER_SHARE - 1, 0)
    turns = steps - 1 - corner_steps
    memory = 1.0 - 1.0 / min(max(turns / TURNS_A_MEAN, 1.0), LONGEST_MEAN)
    for step in range(turns):
        if len(path.rows) == 0:
            return
        done = step / max(turns - 1, 1)
        overshoot = FIRST_OVERSHOOT + (LAST_OVERSHOOT - FIRST_OVERSHOOT) * done
        turn = last_turn + (first_turn - last_turn) * (1.0 - done) ** 2
        path = _turn(problem, path, turn / (1.0 - memory ** (step + 1)), overshoot, memory)
    start = problem.start[path.rows]
    # The move whose projection to the box is the end of the ray.
    move = ray_reach(start, path.direction, path.length, problem.box) * path.direction
    overshoot = CORNER_OVERSHOOT
    for _ in range(corner_steps):
        if len(path.rows) == 0:
            return
        path, move = _step_to_corner(problem, path, move, overshoot)
        overshoot *= OVERSHOOT_GROWTH
    empty = path.keep(torch.isinf(problem.best_distance[path.rows]))
    walk_out(problem, empty.rows, empty.direction, empty.length)


def _turn(problem: Problem, path: _Path, turn: float, overshoot: float, memory: float) -> _Path:
    """One evaluation, one turn and one new length; finished rays leave.

    ``memory`` is the weight of the past in the running mean, ``turn`` is divided by the sum of all.
    """
    start = problem.start[path.rows]
    points = ray_point(start, path.direction, path.length, problem.box)
    margin, gradient = problem.slope(points, path.rows, path.classes)
    forward = linear_distance(margin, gradient)
    normal = -unit(gradient)
    sideways = _across(normal, path.direction)
    mean = memory * path.sideways + (1.0 - memory) * sideways
    best = column(problem.best_distance[path.rows])
    aligned = norm(sideways) <= ALIGNED
    crossed = (best * CEILING**2 <= path.length) & (forward >= -TOUCHING * path.length)
    finished = (crossed & aligned) | (best <= OPTIMAL * path.floor)
    outward = 1.0 + torch.where(aligned, min(overshoot, ALIGNED_OVERSHOOT), overshoot)
    length = torch.minimum((path.length + forward) * outward, CEILING * best)
    turned = replace(
        path.remember(points - start, margin, gradient),
        direction=unit(path.direction + turn * _across(mean, path.direction)),
        sideways=mean,
        length=torch.maximum(length, path.floor),
    )
    return turned.keep(~finished.squeeze(1))


def _across(vector: Vectors, direction: Vectors) -> Vectors:
    """The part of each vector orthogonal to a unit direction."""
    return vector - inner(vector, direction) * direction


def _step_to_corner(
    problem: Problem, path: _Path, move: Vectors, overshoot: float
) -> tuple[_Path, Tensor]:
    """One float64 evaluation at the closest point that satisfies all remembered linearisations:
    a corner is only as exact as the margins it is computed from.

    Entries that the previous move took out of the box are held at its bounds meanwhile.
    """
    start = problem.start[path.rows]
    moved, inside = start + move, problem.clamp(start + move)
    held = (moved < inside) | (moved > inside)
    fixed = torch.where(held, inside - start, 0.0)
    left = path.offsets - (path.normals @ fixed[:, :, None]).squeeze(2)
    multipliers = closest_in_half_spaces(torch.where(held[:, None], 0.0, path.normals), left)
    proposal = -(multipliers[:, None] @ path.normals).squeeze(1)
    points = problem.clamp(start + (1.0 + overshoot) * proposal)
    margin, gradient = problem.slope(points, path.rows, path.classes, wide=True)
    settled = norm(proposal - move) <= SETTLED * norm(move)
    recorded = column(problem.best_distance[path.rows]) * CEILING <= norm(points - start)
    going = ~(settled & recorded).squeeze(1)
    return path.remember(points - start, margin, gradient).keep(going), proposal[going]
