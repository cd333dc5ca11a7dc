r"""The polar factor: the nearest matrix with orthonormal rows."""

import math
from typing import Any

import torch
from jaxtyping import Float, Inexact
from torch import Tensor

from unitmargin.foundation.tensors import makes_numbers

LAST_RESIDUAL = 1e-4
"""Frobenius norm of the residual from which one step of order four ends: its fourth power is 1e-16,
and so small a third and fourth term can be computed in single precision."""

POLISH_STEPS = 60
"""Enough cubic steps to raise a singular value from 1e-9 to 1 (each multiplies it by 1.5)."""


Matrices = Inexact[Tensor, "*stack rows columns"]


class _Polar(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        left, values, right = torch.linalg.svd(raw, full_matrices=False)
        return left @ right, left, values

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*output)
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        gradient = gradients[0]
        q, left, values = ctx.saved_tensors
        # H Y + Y H = G Q^T - Q G^T in the eigenbasis of H = left diag(values) left^T: the sums of
        # singular values never vanish, so equal singular values are harmless here.
        skew = gradient @ q.mT
        skew = left.mT @ (skew - skew.mT) @ left
        skew = skew / (values.unsqueeze(-1) + values.unsqueeze(-2))
        normal = gradient - (gradient @ q.mT) @ q
        normal = (left / values.unsqueeze(-2)) @ (left.mT @ normal)
        return normal + left @ skew @ left.mT @ q


def polar(raw: Float[Tensor, "*stack rows columns"]) -> Float[Tensor, "*stack rows columns"]:
    r"""Polar factor :math:`Q = (X X^T)^{-1/2} X`, the projection on orthonormal rows.

    Shapes: any stack of wide matrices, ``rows <= columns``; computed in float64 inside and
    returned in the input's dtype.
    Guarantee: ``max |Q Q^T - I| <= 5e-7`` after rounding to float32, ``1e-13`` in float64, for
    every input; unique and differentiable where the rows are independent: where they are not, the
    gradient is huge or not finite. Gradient: one Sylvester equation, exact also at equal singular
    values; first derivatives only, a second one would take the singular vectors for constants.

    Raises:
        ValueError: more rows than columns.

    Cost: one SVD of each matrix.
    Source: Higham, Functions of Matrices, chapter 8.

    Example:
        >>> q = polar(torch.randn(9, 64))
        >>> bool((q @ q.mT - torch.eye(9)).abs().max() < 5e-7)
        True
    """
    rows, columns = raw.shape[-2:]
    if rows > columns:
        raise ValueError(f"polar needs rows <= columns, got {rows} x {columns}; transpose it")
    q: Tensor = _Polar.apply(raw.double())[0]  # type: ignore[no-untyped-call]
    return q.to(raw.dtype)


def polish_either_way(weight: Matrices) -> Matrices:
    """:func:`polish` to orthonormal rows, or columns where there are fewer."""
    return polish(weight) if weight.shape[-2] <= weight.shape[-1] else polish(weight.mH).mH


def polish(weight: Matrices) -> Matrices:
    r"""Iterate :math:`X \leftarrow X + \tfrac12 R X`, :math:`R = I - X X^H`, in float64.

    The last step, taken at :math:`\|R\|_F \le 10^{-4}`, adds
    :math:`(\tfrac38 R^2 + \tfrac5{16} R^3) X` and leaves :math:`\tfrac{35}{64} R^4`; orthogonal
    float32 weights need that step alone. Real and complex stacks. For a matrix near the manifold
    this is the polar factor; convergence is quadratic. No gradient flows through it.
    Guarantee: ``max |X X^H - I| <= 1e-13``.

    Raises:
        ValueError: the iteration does not converge: a singular value is zero. From sqrt 3 on it
            diverges, or ends at another orthogonal matrix.
    """
    wide = weight.detach().to(torch.complex128 if weight.is_complex() else torch.float64)
    if wide.numel() == 0 or wide.is_meta or not makes_numbers():
        return wide
    eye = torch.eye(wide.shape[-2], dtype=wide.dtype, device=wide.device)
    size = float("inf")
    for _ in range(POLISH_STEPS):
        residual = eye - wide @ wide.mH
        size = float(torch.linalg.vector_norm(residual, dim=(-2, -1)).max())
        second = residual @ wide
        wide = wide + 0.5 * second
        if size <= LAST_RESIDUAL:
            single = torch.complex64 if wide.is_complex() else torch.float32
            third = residual.to(single) @ second.to(single)
            return wide + (0.375 * third + 0.3125 * residual.to(single) @ third)
        if not math.isfinite(size):
            break
    raise ValueError(
        f"weight of shape {tuple(weight.shape)} does not converge to orthonormal rows (residual "
        f"{size:.1e} after at most {POLISH_STEPS} steps); it is far from orthogonal: lower the "
        "learning rate, and move weights on the manifold with unitmargin.build_optimizers"
    )
