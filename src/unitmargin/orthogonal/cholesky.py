"""Dense weights by a Cholesky factorisation: exact, and the fastest of the exact ones."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.orthogonal.layer import OrthogonalLinear
from unitmargin.orthogonal.magnitude import of_size_one


class _Cholesky(torch.autograd.Function):
    """W = L^-1 X with X X^T = L L^T; the gradient is L^-T (G - S W), S from the lower part of
    G W^T mirrored: two products and one triangular solve."""

    generate_vmap_rule = True

    @staticmethod
    def forward(raw: Tensor) -> tuple[Tensor, Tensor]:
        lower = torch.linalg.cholesky(raw @ raw.mT)
        return torch.linalg.solve_triangular(lower, raw, upper=False), lower

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*output)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        gradient = gradients[0]
        weight, lower = ctx.saved_tensors
        product = (gradient @ weight.mT).tril()
        mirrored = product + product.tril(-1).mT
        inner = gradient - mirrored @ weight
        return torch.linalg.solve_triangular(lower.mT, inner, upper=True)


def cholesky(raw: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    r"""Gram-Schmidt of the rows by Cholesky: :math:`W = L^{-1} X` with :math:`X X^T = L L^T`.

    Shapes: ``rows <= columns``. Equal to the Q factor of a QR factorisation of the transpose,
    with positive diagonal.
    Guarantee: ``max |W W^T - I| <= 2e-6`` in float32 for a condition number up to 3 (the error
    grows as the condition number squared times one ulp), whatever the magnitude of X: a multiple by
    a power of two has the same W, to the last bit. First derivatives only: a second one would take
    the triangular factor for a constant.

    Raises:
        torch.linalg.LinAlgError: the rows are dependent to working precision.

    Cost: two products of the weight's size, forward; two and a triangular solve, backward. As fast
    as QR on one core and made of products, which scale (measured in docs/theory.md).

    Example:
        >>> w = cholesky(torch.nn.init.orthogonal_(torch.empty(8, 32)) * 0.7)
        >>> bool((w @ w.mT - torch.eye(8)).abs().max() < 2e-6)
        True
    """
    weight: Tensor = _Cholesky.apply(of_size_one(raw))[0]  # type: ignore[no-untyped-call]
    return weight


class CholeskyLinear(OrthogonalLinear):
    """Dense layer whose weight is the orthonormalised free matrix; see :func:`cholesky`."""

    products = 2
    polishing_tolerance = 1e-2
    """The rounding of the factor grows with the squared condition number: 2e-4 at 400 x 400 and the
    harsh rate 0.1, 1e-3 at condition number 300."""

    def weight(self) -> Float[Tensor, "out in"]:
        return cholesky(self.raw)
