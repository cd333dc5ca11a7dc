"""Fast Outer Boundary and Closest Boundary: straight rays down the gradients at the samples."""

import torch

from unitmargin.solvers.geometry import (
    Mask,
    Rows,
    Values,
    Vectors,
    column,
    linear_distance,
    ray_point,
    unit,
)
from unitmargin.solvers.problem import Problem, select

LADDER = tuple(1.001 * 2.0**doubling for doubling in range(-3, 6))
"""Trial lengths of a ray search in units of the linearised distance, shortest first: it aims at the
first crossing. The factor 1.001 lets a trial cross a boundary that is exactly linear."""

BISECTIONS = 17
"""Published resolution of the ray search, 2**-16 of the bracket."""


def fast_outer_boundary(problem: Problem) -> None:
    r"""Fast Outer Boundary: :math:`\min \{ t > 0 : M(x + t \nu) = 0 \}` with
    :math:`\nu = -\nabla M(x) / \|\nabla M(x)\|`, M the margin against all classes.

    The search on the ray is that of :func:`closest_boundary`.

    Guarantee: exact to 1e-5 on affine classifiers of two classes without a box; elsewhere an upper
    bound, 2 % to 10 % above the minimum on small networks. FAILED where the ray does not meet the
    boundary.
    Cost: 1 backward and at most 27 forward passes.
    Source: Brau et al., arXiv 2201.01235, Fast Outer Boundary with bisection.

    Example:
        >>> from unitmargin.solvers import minimal_perturbation
        >>> x, label = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
        >>> found = minimal_perturbation(torch.nn.Identity(), x, label, "fast_outer_boundary")
        >>> abs(float(found.distance) - 2**0.5) < 1e-5
        True
    """
    rows = problem.all_rows()
    margin, gradient = problem.slope(problem.start, rows)
    _search(problem, rows, None, margin, gradient)


def closest_boundary(problem: Problem) -> None:
    r"""Closest Boundary: :math:`\min_j \min \{ t > 0 : F_j(x + t \nu_j) = 0 \}` with
    :math:`F_j = f_l - f_j` and :math:`\nu_j = -\nabla F_j(x) / \|\nabla F_j(x)\|`.

    The direction is not updated along the ray. Each crossing is bracketed on a ladder of doubling
    lengths, from 1/8 to 32 times the linearised distance (the publication leaves its values open)
    or from the certified distance, and bisected 17 times as published; a class leaves as soon as
    its bracket lies beyond the best crossing. As many rays are followed at once as the batch has
    samples, or those of one sample.

    Guarantee: exact to 1e-5 on affine classifiers without a box; elsewhere an upper bound, 2 % to
    5 % above the minimum on small networks. FAILED where no ray meets the boundary.
    Cost: ``classes - 1`` backward passes, and at most 26 forward passes for each other class.
    Source: Brau et al., arXiv 2201.01235, Closest Boundary with bisection.

    Example:
        >>> from unitmargin.solvers import minimal_perturbation
        >>> x, label = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
        >>> found = minimal_perturbation(torch.nn.Identity(), x, label, "closest_boundary")
        >>> abs(float(found.distance) - 2**0.5) < 1e-5
        True
    """
    rivals = problem.rivals()
    for rows in problem.all_rows().split(max(len(problem) // rivals.shape[1], 1)):
        others = rivals[rows]
        margins, gradients = problem.pair_slopes(problem.start[rows], rows, others)
        rows, classes = rows.repeat_interleave(others.shape[1]), others.flatten()
        _search(problem, rows, classes, margins.flatten(), gradients.flatten(0, 1))


def _search(
    problem: Problem, rows: Rows, classes: Rows | None, margins: Values, gradients: Vectors
) -> None:
    """Bracket the first crossing of every ray, from its certified distance, then bisect it.

    A ray is dropped as soon as its bracket lies beyond the shortest crossing of its sample.
    """

    def crosses(chosen: Rows, length: Values) -> Mask:
        at, direction = rows[chosen], -unit(gradients[chosen])
        points = ray_point(problem.start[at], direction, column(length), problem.box)
        against = None if classes is None else classes[chosen]
        return problem.margin(points, at, against) <= -problem.tolerance[at]

    guess = linear_distance(margins, gradients).squeeze(1)
    low = select(problem.lower_bounds[rows], classes).clone()
    high = torch.full_like(guess, torch.inf)

    def beaten() -> Mask:
        """Rays whose bracket lies beyond the shortest crossing of their sample."""
        shortest = torch.full_like(problem.best_distance, torch.inf)
        return low >= shortest.scatter_reduce(0, rows, high, "amin")[rows]

    for factor in LADDER:
        length = factor * guess
        pending = (torch.isinf(high) & (length > low) & ~beaten()).nonzero().squeeze(1)
        if len(pending) == 0:
            continue
        crossed = crosses(pending, length[pending])
        high[pending[crossed]] = length[pending[crossed]]
        low[pending[~crossed]] = length[pending[~crossed]]
    for _ in range(BISECTIONS):
        chosen = (torch.isfinite(high) & ~beaten()).nonzero().squeeze(1)
        if len(chosen) == 0:
            return
        middle = 0.5 * (low[chosen] + high[chosen])
        crossed = crosses(chosen, middle)
        high[chosen[crossed]], low[chosen[~crossed]] = middle[crossed], middle[~crossed]
