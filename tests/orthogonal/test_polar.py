"""The polar factor: formula, nearest point, gradient; and the polish in float64."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.orthogonal.polar import LAST_RESIDUAL, polar, polish

EXACTNESS = 1e-13
"""The promise of both docstrings in float64."""

FLOAT32_PROMISE = 5e-7
"""The promise of polar's docstring after rounding to float32."""

SHAPES = [(1, 1), (1, 5), (3, 3), (4, 7)]


def residual(q: torch.Tensor) -> float:
    return float((q @ q.mH - torch.eye(q.shape[-2], dtype=q.dtype)).abs().max())


def near_orthonormal(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    frame = torch.linalg.qr(torch.randn(*shape[:-2], shape[-1], shape[-2], dtype=dtype)).Q.mH
    return frame + 0.02 * torch.randn(shape, dtype=dtype)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_formula(shape: tuple[int, int]) -> None:
    raw = torch.randn(shape, dtype=torch.float64)
    values, vectors = torch.linalg.eigh(raw @ raw.mT)
    expected = vectors @ torch.diag(values.rsqrt()) @ vectors.mT @ raw
    assert (polar(raw) - expected).abs().max() <= 1e-10


def test_no_other_orthonormal_frame_is_nearer() -> None:
    raw = torch.randn(3, 5, dtype=torch.float64)
    best = (raw - polar(raw)).norm()
    for _ in range(50):
        direction = torch.randn(3, 5, dtype=torch.float64)
        near = polar(polar(raw) + 0.05 * direction)
        assert (raw - near).norm() > best


@given(st.integers(1, 40), st.integers(0, 20), st.integers(0, 99))
def test_rows_are_orthonormal(rows: int, extra: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    raw = torch.randn(2, rows, rows + extra, generator=generator)
    assert residual(polar(raw)) <= FLOAT32_PROMISE
    assert polar(raw).dtype == torch.float32
    assert residual(polar(raw.double())) <= EXACTNESS


@pytest.mark.parametrize("shape", [*SHAPES, (2, 2, 3)])
def test_gradients(shape: tuple[int, ...]) -> None:
    raw = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(polar, raw)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_at_equal_singular_values(shape: tuple[int, int]) -> None:
    rows, columns = shape
    frame = torch.linalg.qr(torch.randn(columns, rows, dtype=torch.float64)).Q.mT
    raw = (1.3 * frame).contiguous().requires_grad_(True)
    assert torch.autograd.gradcheck(polar, raw)


def test_tall_matrices_are_refused() -> None:
    with pytest.raises(ValueError, match="rows <= columns, got 4 x 3"):
        polar(torch.randn(4, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_polish_ends_orthonormal_in_float64(dtype: torch.dtype) -> None:
    polished = polish(near_orthonormal(5, 4, 6, dtype=dtype))
    assert polished.dtype == (torch.complex128 if dtype.is_complex else torch.float64)
    assert residual(polished) <= EXACTNESS


def test_polish_ends_at_the_polar_factor() -> None:
    raw = near_orthonormal(4, 6)
    assert (polish(raw) - polar(raw)).abs().max() <= 1e-12


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_the_last_step_of_polish_is_exact(dtype: torch.dtype) -> None:
    """Just below the residual from which one step is taken: a singular value of 1 + 4e-5."""
    frame = torch.linalg.qr(torch.randn(30, 30, dtype=dtype)).Q[:1]
    raw = (1.0 + 0.4 * LAST_RESIDUAL) * frame
    assert 0.5 * LAST_RESIDUAL < torch.linalg.vector_norm(raw @ raw.mH - 1.0) <= LAST_RESIDUAL
    assert residual(polish(raw)) <= 1e-14
    assert (polish(raw) - frame).abs().max() <= 1e-14


def test_polish_of_nothing_is_nothing() -> None:
    assert polish(torch.empty(0, 3, 4)).shape == (0, 3, 4)


@pytest.mark.parametrize(
    "weight", [torch.zeros(2, 3), 3.0 * torch.eye(2), torch.full((2, 2), torch.nan)]
)
def test_polish_refuses_what_it_cannot_mend(weight: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="does not converge to orthonormal rows"):
        polish(weight)
