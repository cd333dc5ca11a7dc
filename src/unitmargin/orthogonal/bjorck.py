"""Dense weights by the Björck iteration: the paper's choice for fully connected layers."""

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.orthogonal.linear import OrthogonalLinear

BJORCK_STEPS = 15
"""From singular values in [0.5, 1.4], where training keeps them, 5 steps reach float32 accuracy;
15 also serve a start of condition number 30."""

BJORCK_BETA = 0.5
"""Order-1 coefficient of the paper; the step is then x (3 - x^2) / 2 on each singular value."""

POWER_STEPS = 8
"""Power steps that estimate the largest singular value before the iteration; an estimate within a
factor sqrt 3 below the truth is enough for convergence."""


def largest_singular_value(raw: Float[Tensor, "rows columns"]) -> Float[Tensor, ""]:
    """Estimate from below, by power steps from the row sums: no state, no random start."""
    vector = torch.ones_like(raw[:, 0]) + 0.1 * raw.detach().sum(1)
    matrix = raw.detach()
    for _ in range(POWER_STEPS):
        vector = torch.nn.functional.normalize(matrix @ (matrix.mT @ vector), dim=0)
    norm: Tensor = torch.linalg.vector_norm(matrix.mT @ vector)
    return norm


def bjorck(
    raw: Float[Tensor, "rows columns"], steps: int = BJORCK_STEPS
) -> Float[Tensor, "rows columns"]:
    r"""Björck iteration of order 1, :math:`W \leftarrow (1 + \beta) W - \beta W W^T W`, beta 0.5.

    Shapes: ``rows <= columns``. The start is divided by its (estimated) largest singular value.
    Guarantee: ``max |W W^T - I| <= 2e-6`` in float32 after 15 steps for a condition number up to
    30. From a square Gaussian start (condition number about 1e4) 15 steps are not enough: the
    layers start orthogonal for that reason. In exact arithmetic a step never pushes a singular
    value in [0, 2] above 1, so an unfinished iteration costs tightness, not soundness.

    Cost: 2 products of the weight's size a step, and as much again twice in the backward pass.
    Source: the paper, section 4.1; Anil, Lucas, Grosse, arXiv 1811.05381.

    Example:
        >>> w = bjorck(torch.nn.init.orthogonal_(torch.empty(8, 32)) * 0.7)
        >>> bool((w @ w.mT - torch.eye(8)).abs().max() < 2e-6)
        True
    """
    weight = raw / largest_singular_value(raw)
    for _ in range(steps):
        weight = (1.0 + BJORCK_BETA) * weight - BJORCK_BETA * (weight @ weight.mT) @ weight
    return weight


class BjorckLinear(OrthogonalLinear):
    """Dense layer whose weight is the Björck iterate of a free matrix; see :func:`bjorck`."""

    def weight(self) -> Float[Tensor, "out in"]:
        return bjorck(self.raw)
