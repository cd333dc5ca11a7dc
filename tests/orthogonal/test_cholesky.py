"""Gram-Schmidt by Cholesky: which matrix it is, and its hand-written gradient."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.orthogonal.cholesky import CholeskyLinear, cholesky

EXACTNESS = 1e-12
"""A float64 factorisation of matrices with condition number below 100."""

FLOAT32_PROMISE = 2e-6
"""The promise of the docstring for condition numbers up to 3."""

SHAPES = [(1, 1), (1, 5), (3, 3), (4, 7)]


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_q_factor_with_positive_diagonal(shape: tuple[int, int]) -> None:
    raw = torch.randn(shape, dtype=torch.float64)
    q, r = torch.linalg.qr(raw.mT)
    expected = (q * r.diagonal().sign()).mT
    assert (cholesky(raw) - expected).abs().max() <= EXACTNESS


@given(st.integers(1, 30), st.integers(0, 30), st.integers(0, 99))
def test_rows_are_orthonormal_in_float32(rows: int, extra: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    wide = torch.randn(rows, rows + extra, generator=generator, dtype=torch.float64)
    left, _, right = torch.linalg.svd(wide, full_matrices=False)
    values = torch.linspace(3.0, 1.0, rows, dtype=torch.float64)
    weight = cholesky(((left * values) @ right).float())
    assert (weight @ weight.mT - torch.eye(rows)).abs().max() <= FLOAT32_PROMISE


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients(shape: tuple[int, int]) -> None:
    raw = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(cholesky, raw)


def test_gradients_at_orthonormal_rows() -> None:
    raw = torch.linalg.qr(torch.randn(5, 3, dtype=torch.float64)).Q.mT.contiguous()
    assert torch.autograd.gradcheck(cholesky, raw.requires_grad_(True))


def test_dependent_rows_are_an_error() -> None:
    with pytest.raises(torch.linalg.LinAlgError):
        cholesky(torch.ones(2, 4))


def test_the_layer_starts_at_its_raw_weight() -> None:
    layer = CholeskyLinear(6, 4)
    assert (layer.weight() - layer.raw).abs().max() <= FLOAT32_PROMISE


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("exponent", [-110, -40, 1, 70, 110])
def test_a_multiple_by_a_power_of_two_has_the_same_weight(
    exponent: int, dtype: torch.dtype
) -> None:
    """To the last bit, and its gradient is divided by the factor."""
    factor = 2.0**exponent
    raw = torch.randn(4, 9, dtype=dtype).requires_grad_()
    multiple = (raw.detach() * factor).requires_grad_()
    weights = cholesky(raw), cholesky(multiple)
    assert torch.equal(*weights)
    outer = torch.randn(4, 9, dtype=dtype)
    for weight in weights:
        (weight * outer).sum().backward()
    assert raw.grad is not None
    assert multiple.grad is not None
    assert torch.equal(raw.grad, multiple.grad * factor)
