"""Decoupled direction and norm: the step sets the direction, success or failure the radius."""

import torch
from jaxtyping import Float64
from torch import Tensor

from unitmargin.foundation.choice import choose
from unitmargin.solvers.geometry import column, cosine_decay, linear_distance, unit
from unitmargin.solvers.problem import Problem
from unitmargin.solvers.rays import rank_classes

LAST_STEP = 0.01
"""Length of the last step in units of the first, as published."""

FIRST_STEPS = {"cross_entropy": 1.0, "margin": 0.2}
"""Published length of the first step, in input units; and a fraction of the linearised distance."""


def ddn(
    problem: Problem,
    *,
    loss: str = "cross_entropy",
    steps: int = 100,
    temperature: float = 1.0,
    decay: float = 0.05,
    first_step: float | None = None,
) -> None:
    r"""Decoupled direction and norm, with the published loss or with the margin.

    .. math:: \delta \leftarrow r\,
        \frac{\delta - a\,\nabla J / \|\nabla J\|}{\|\delta - a\,\nabla J / \|\nabla J\|\|},
        \quad r \leftarrow r (1 \mp \gamma)

    r shrinks where :math:`x + \delta` is adversarial and grows where it is not; a decays along a
    cosine to 1 % of its start. Nothing is rounded to a pixel grid.

    Args:
        loss: ``cross_entropy`` descends the log-likelihood of the label, as published, from
            r = 1 with first step 1 in input units: the solver behind the paper's box-constrained
            column. ``margin`` descends the margin, from the linearised distance to the nearest
            class with a first step of 0.2 of it.
        steps: evaluations.
        temperature: factor on the logits before the cross-entropy.
        decay: gamma.
        first_step: replaces the default above.

    Guarantee: ``margin``: within 1 % of the true distance on the closed-form classifiers of the
    tests. ``cross_entropy`` has none: where softmax is nearly flat its gradient points away from
    the *average* of the other classes, and it exceeds the minimum by up to
    :math:`\sqrt{2 (C - 1) / C}` on a UGNN (1.34 for C = 10, 1 for C = 2).
    Cost: ``steps`` forward and backward passes (and one backward pass for each of up to ten
    classes at the start, with the margin and without certified distances).
    Source: Rony et al., Decoupling Direction and Norm, arXiv 1811.09600, algorithm 1.

    Raises:
        ValueError: another loss, or a temperature with the margin.

    Example:
        >>> from unitmargin.solvers import minimal_perturbation
        >>> x, label = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
        >>> found = minimal_perturbation(torch.nn.Identity(), x, label, "ddn")
        >>> abs(float(found.distance) - 2**0.5) < 1e-6
        True
    """
    published = choose("loss", loss, FIRST_STEPS)
    _require_temperature(loss, temperature)
    start = problem.start
    move, radius = torch.zeros_like(start), torch.ones_like(start[:, :1])
    scale = radius
    longest = published if first_step is None else first_step
    for step in range(steps):
        if step == 0 and loss == "margin":
            first = rank_classes(problem, 1)
            gradient = first.gradient
            scale = radius = linear_distance(first.margin, gradient)
        else:
            crossed, gradient = _evaluate(problem, start + move, loss, temperature)
            radius = radius * torch.where(crossed, 1.0 - decay, 1.0 + decay)
        length = scale * cosine_decay(longest, LAST_STEP * longest, step / max(steps - 1, 1))
        move = radius * unit(move - length * unit(gradient))
        move = problem.clamp(start + move) - start


def _evaluate(
    problem: Problem, points: Float64[Tensor, "batch features"], loss: str, temperature: float
) -> tuple[Tensor, Float64[Tensor, "batch features"]]:
    """Whether each point is adversarial, as a column, and the gradient to be descended."""
    if loss == "margin":
        margin, gradient = problem.slope(points, problem.all_rows())
    else:
        labels = problem.labels[:, None]
        margin, _, gradient = problem.descend(
            points,
            problem.all_rows(),
            lambda logits, _: (temperature * logits).log_softmax(1).gather(1, labels).squeeze(1),
        )
    return column(margin <= -problem.tolerance), gradient


def _require_temperature(loss: str, temperature: float) -> None:
    if loss == "margin" and temperature != 1.0:
        raise ValueError(
            f"temperature must be 1 with loss='margin', got {temperature}; the margin's direction "
            "does not depend on it, drop it"
        )
