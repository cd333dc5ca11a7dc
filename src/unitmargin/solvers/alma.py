"""Augmented Lagrangian: minimise the norm while a multiplier enforces the crossing."""

import torch

from unitmargin.solvers.geometry import Column, Positive, Share, column, linear_distance, norm
from unitmargin.solvers.problem import Problem
from unitmargin.solvers.rays import rank_classes

SMALLEST_MULTIPLIER, LARGEST_MULTIPLIER = 1e-6, 1e12
"""Published bounds of the multiplier."""

REVIEW_EVERY, PENALTY_GROWTH, PROGRESS = 10, 1.2, 0.95
"""Published rule: after so many steps without a crossing and without this much progress, the
penalty parameter grows by the factor."""

LAST_STEP = 0.05
"""Length of the last step in units of the first."""


def alma(
    problem: Problem, *, steps: int = 100, first_step: Positive = 0.2, smoothing: Share = 0.5
) -> None:
    r"""Augmented Lagrangian method on the margin.

    .. math:: \min_\delta \|\delta\|^2 / d^2 + P(y, \rho, \mu), \quad
        y = M(x + \delta) / M(x), \quad \mu \leftarrow \alpha \mu + (1 - \alpha) P'(y, \rho, \mu)

    with d the linearised distance, :math:`P = \mu y + \mu \rho y^2 + \rho^2 y^3 / 6` for
    :math:`y \ge 0` and :math:`\mu y / (1 - \rho y)` below. Differences from the publication: the
    constraint is the plain margin (the published ratio needs three classes), both terms are free
    of units, and the step is normalised by one running mean of the squared gradient norm a sample,
    so that a rotation of the input changes nothing.

    Args:
        steps: evaluations.
        first_step: length of the first step in units of d; it decays exponentially to 5 % of it.
        smoothing: alpha, below 1, for the multiplier, the gradient and its squared norm.

    Guarantee: within 1 % of the true distance on the closed-form classifiers of the tests, 1.1 % at
    a corner of a box.
    Cost: ``steps`` forward and backward passes, and up to 9 that order the classes.
    Source: Rony et al., Augmented Lagrangian Adversarial Attacks, arXiv 2011.11857, algorithm 1.

    Example:
        >>> from unitmargin.solvers import minimal_perturbation
        >>> x, label = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
        >>> found = minimal_perturbation(torch.nn.Identity(), x, label, "alma")
        >>> abs(float(found.distance) - 2**0.5) < 1e-5
        True
    """
    start, rows = problem.start, problem.all_rows()
    nearest, margin, gradient = rank_classes(problem, 1)
    whole, scale = column(margin), linear_distance(margin, gradient)
    move, drift = torch.zeros_like(start), torch.zeros_like(start)
    multiplier, penalty, square = torch.ones_like(whole), torch.ones_like(whole), whole * 0.0
    reviewed, crossed = torch.ones_like(whole), torch.zeros_like(whole, dtype=torch.bool)
    for step in range(steps):
        if step > 0:
            margin, gradient = problem.slope(start + move, rows, nearest[:, 0])
        share = column(margin) / whole
        crossed |= share <= 0.0
        pull = penalty_slope(share, multiplier, penalty)
        multiplier = torch.lerp(pull, multiplier, smoothing)
        multiplier = multiplier.clamp(SMALLEST_MULTIPLIER, LARGEST_MULTIPLIER)
        if step % REVIEW_EVERY == REVIEW_EVERY - 1:
            stuck = ~crossed & (share > PROGRESS * reviewed)
            penalty = torch.where(stuck, PENALTY_GROWTH * penalty, penalty)
            reviewed, crossed = share, torch.zeros_like(crossed)
        pull = penalty_slope(share, multiplier, penalty)
        slope = torch.where(scale > 0, 2.0 * move / scale, 0.0) + pull * gradient * scale / whole
        square = torch.lerp(norm(slope).square(), square, smoothing)
        mean = (square / (1.0 - smoothing ** (step + 1))).sqrt()
        drift = torch.lerp(torch.where(mean > 0, slope / mean, 0.0), drift, smoothing)
        length = scale * first_step * LAST_STEP ** (step / max(steps - 1, 1))
        move = problem.clamp(start + move - length * drift) - start


def penalty_slope(share: Column, multiplier: Column, penalty: Column) -> Column:
    """Derivative of the penalty by the constraint."""
    above = multiplier * (1.0 + 2.0 * penalty * share) + 0.5 * (penalty * share).square()
    below = multiplier / (1.0 - penalty * share.clamp_max(0.0)).square()
    return torch.where(share > 0.0, above, below)
