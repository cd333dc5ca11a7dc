"""Fast Outer Boundary: one gradient, one ray, one search."""

from unitmargin.solvers.problem import Problem
from unitmargin.solvers.rays import Rays, search_rays


def fast_outer_boundary(problem: Problem) -> None:
    r"""Fast Outer Boundary: :math:`\min \{ t > 0 : M(x + t \nu) = 0 \}` with
    :math:`\nu = -\nabla M(x) / \|\nabla M(x)\|`, M the margin against all classes.

    The search on the ray is that of :func:`closest_boundary`.

    Guarantee: exact to 1e-5 on affine classifiers of two classes without a box; elsewhere an upper
    bound, 2 % to 10 % above the minimum on small networks. FAILED where the ray does not meet the
    boundary.
    Cost: 1 backward and at most 46 forward passes.
    Source: Brau et al., arXiv 2201.01235, Fast Outer Boundary with bisection.

    Example:
        >>> import torch
        >>> from unitmargin.solvers import minimal_perturbation
        >>> x, label = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
        >>> found = minimal_perturbation(torch.nn.Identity(), x, label, "fast_outer_boundary")
        >>> abs(float(found.distance) - 2**0.5) < 1e-5
        True
    """
    rows = problem.all_rows()
    margin, gradient = problem.slope(problem.start, rows)
    search_rays(problem, Rays(rows, None, margin, gradient))
