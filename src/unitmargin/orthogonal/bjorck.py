"""Dense weights by the Björck iteration: the paper's choice for fully connected layers."""

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.orthogonal.layer import OrthogonalLinear

BJORCK_STEPS = 15
"""From singular values in [0.5, 1.4], where training keeps them, 5 steps reach float32 accuracy;
15 also serve a start of condition number 30."""

BJORCK_BETA = 0.5
"""Order-1 coefficient of the paper; the step is then x (3 - x^2) / 2 on each singular value."""

SQUARINGS = 3
"""Squarings of the Gram matrix that bound the largest singular value from above, within a factor
rows^(1/32) of the truth: 1.24 for 1024 rows."""

WIDE = 2
"""From this many columns a row on, the iteration runs on the Gram matrix: 2.7 times fewer
multiplications at 512 x 4096, 1.8 times fewer at 1024 x 3072."""

Stack = Float[Tensor, "*stack rows columns"]


def largest_singular_value(raw: Stack) -> Float[Tensor, "*stack"]:
    r"""Upper bound :math:`\|(X X^T)^8\|_F^{1/16}`, without state, start vector or gradient.

    A bound from above is what makes the iteration safe: it diverges from :math:`\sqrt 5` on, and
    power steps from any fixed vector miss the largest direction of some matrix. The matrix is
    divided by its largest entry and the Gram matrix rescaled before each squaring, so nothing over-
    or underflows.
    Shapes: any stack of matrices. A matrix of zeros gets NaN.
    Cost: one product of the weight's size and ``SQUARINGS`` of rows x rows.
    """
    largest = raw.detach().abs().amax((-2, -1), keepdim=True)
    matrix = raw.detach() / largest
    gram = matrix @ matrix.mT
    bound: Tensor = torch.linalg.matrix_norm(gram)
    for doubling in range(1, SQUARINGS + 1):
        gram = gram / torch.linalg.matrix_norm(gram)[..., None, None]
        gram = gram @ gram
        bound = bound * torch.linalg.matrix_norm(gram) ** 0.5**doubling
    return bound.sqrt() * largest[..., 0, 0]


def bjorck(raw: Stack, steps: int = BJORCK_STEPS) -> Stack:
    r"""Björck iteration of order 1, :math:`W \leftarrow (1 + \beta) W - \beta W W^T W`, beta 0.5.

    Shapes: any stack with ``rows <= columns``. The start is divided by a bound of its largest
    singular value.
    Guarantee: ``max |W W^T - I| <= 2e-6`` in float32 after 15 steps for a condition number up to
    30. From a square Gaussian start (condition number about 1e4) 15 steps are not enough: the
    layers start orthogonal for that reason. In exact arithmetic a step keeps every singular value
    in [0, 1], so an unfinished iteration costs tightness, not soundness.

    Cost: 2 products of the weight's size a step, and as much again twice in the backward pass.
    Wide matrices take all steps but the last on their Gram matrix, 3 products of rows x rows each;
    the last step squares what that rounds.
    Source: the paper, section 4.1; Anil, Lucas, Grosse, arXiv 1811.05381.

    Example:
        >>> w = bjorck(torch.nn.init.orthogonal_(torch.empty(8, 32)) * 0.7)
        >>> bool((w @ w.mT - torch.eye(8)).abs().max() < 2e-6)
        True
    """
    weight = raw / largest_singular_value(raw)[..., None, None]
    if weight.shape[-1] >= WIDE * weight.shape[-2] and steps > 1:
        weight, steps = _steps_on_gram(weight, steps - 1) @ weight, 1
    for _ in range(steps):
        weight = (1.0 + BJORCK_BETA) * weight - BJORCK_BETA * (weight @ weight.mT) @ weight
    return weight


def _steps_on_gram(weight: Stack, steps: int) -> Float[Tensor, "*stack rows rows"]:
    """The factor M of that many steps, which take W to M W; it is a polynomial in W W^T."""
    gram = weight @ weight.mT
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    factor = (1.0 + BJORCK_BETA) * eye - BJORCK_BETA * gram
    product = factor
    for _ in range(steps - 1):
        gram = factor @ gram @ factor
        factor = (1.0 + BJORCK_BETA) * eye - BJORCK_BETA * gram
        product = factor @ product
    return product


class BjorckLinear(OrthogonalLinear):
    """Dense layer whose weight is the Björck iterate of a free matrix; see :func:`bjorck`."""

    products = 2 * BJORCK_STEPS

    def weight(self) -> Float[Tensor, "out in"]:
        return bjorck(self.raw)
