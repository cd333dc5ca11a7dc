"""Decoupled direction and norm: the step sets the direction, success or failure the radius."""

from typing import Literal

import torch
from torch import Tensor

from unitmargin.solvers.geometry import Positive, Share, column, cosine_decay, linear_distance, unit
from unitmargin.solvers.problem import Problem, select
from unitmargin.solvers.rays import rank_classes

LAST_STEP = 0.01
"""Length of the last step in units of the first, as published."""

FIRST_STEPS = {"cross_entropy": 1.0, "margin": 0.2}
"""Published length of the first step, in input units; and a fraction of the linearised distance."""


def ddn(
    problem: Problem,
    *,
    loss: Literal["cross_entropy", "margin"] = "cross_entropy",
    steps: int = 100,
    temperature: Positive = 1.0,
    decay: Share = 0.05,
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
    the *average* of the other classes, which is up to
    :math:`\sqrt{2 (C - 1) / C}` times as far on an affine network with a UPD head (1.34 for C = 10,
    1 for C = 2). On trained UGNNs of ten classes it was up to 1.4 times as far, and farther where
    distances are far from 1.
    Cost: ``steps`` forward and backward passes, and with the margin up to 9 that order the classes.
    Source: Rony et al., Decoupling Direction and Norm, arXiv 1811.09600, algorithm 1.

    Raises:
        ValueError: a temperature with the margin.

    Example:
        >>> from unitmargin.solvers import minimal_perturbation
        >>> x, label = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
        >>> found = minimal_perturbation(torch.nn.Identity(), x, label, "ddn")
        >>> abs(float(found.distance) - 2**0.5) < 1e-6
        True
    """
    published = FIRST_STEPS[loss]
    if loss == "margin" and temperature != 1.0:
        raise ValueError(
            f"temperature must be 1 with loss='margin', got {temperature}; the margin's direction "
            "does not depend on it, drop it"
        )
    start, rows, labels = problem.start, problem.all_rows(), column(problem.labels)

    def objective(logits: Tensor, margins: Tensor) -> Tensor:
        if loss == "margin":
            return column(select(margins, None))
        return (temperature * logits).log_softmax(1).gather(1, labels)

    move, scale = torch.zeros_like(start), torch.ones_like(start[:, :1])
    radius, longest = scale, published if first_step is None else first_step
    for step in range(steps):
        if step == 0 and loss == "margin":
            _, margin, gradient = rank_classes(problem, 1)
            scale = radius = linear_distance(margin, gradient)
        else:
            margins, gradients = problem.descend(start + move, rows, objective)
            gradient = gradients[:, 0]
            crossed = column(margins.min(1).values <= -problem.tolerance)
            radius = radius * torch.where(crossed, 1.0 - decay, 1.0 + decay)
        length = scale * cosine_decay(longest, LAST_STEP * longest, step / max(steps - 1, 1))
        move = radius * unit(move - length * unit(gradient))
        move = problem.clamp(start + move) - start
