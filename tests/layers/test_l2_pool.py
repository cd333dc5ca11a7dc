"""The pool of norms: its values against whole numbers, its gradient at every magnitude."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jacobians import gnp_error, jacobian
from torch import Tensor

from unitmargin.layers.arithmetic import UNIT_ROUNDOFF, gamma
from unitmargin.layers.l2_pool import ROOT_ROUNDINGS, L2Pool

GNP_EXACT = 1e-15
"""A quotient, a sum of up to nine squares and its root in float64."""

DENORMAL = {torch.float32: 2.0**-149, torch.float64: 2.0**-1074}

DTYPES = [torch.float32, torch.float64]


def exact_norm(window: Tensor, places: int = 1200) -> Fraction:
    """The norm of some numbers, rounded down to a multiple of ``2**-places``."""
    squares = sum(Fraction(number) ** 2 for number in window.flatten().tolist())
    shifted = squares * 4**places
    return Fraction(math.isqrt(shifted.numerator // shifted.denominator), 2**places)


def test_a_norm_by_hand() -> None:
    x = torch.tensor([[3.0, 0.0, 1.0, -1.0], [0.0, -4.0, 1.0, 1.0]])
    assert L2Pool(2)(x[None, None]).tolist() == [[[[5.0, 2.0]]]]


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_windows_are_disjoint_and_of_one_channel(
    channels: int, height: int, width: int, size: int
) -> None:
    x = torch.randn(2, channels, size * height, size * width, dtype=torch.float64)
    pooled = L2Pool(size)(x)
    assert pooled.shape == (2, channels, height, width)
    for i in range(height):
        for j in range(width):
            window = x[:, :, i * size : (i + 1) * size, j * size : (j + 1) * size]
            expected = window.flatten(2).norm(dim=2)
            assert (pooled[:, :, i, j] - expected).abs().max() <= 1e-14


def windows_of_all_magnitudes(dtype: torch.dtype, size: int) -> Tensor:
    """Ordinary numbers, tiny and huge ones, single ones, and windows of every magnitude at once."""
    generator = torch.Generator().manual_seed(size)
    x = torch.randn(60, 1, size, size, generator=generator, dtype=torch.float64)
    low, high = (-149, 120) if dtype == torch.float32 else (-1074, 1000)
    shared = torch.randint(low, high, (60, 1, 1, 1), generator=generator)
    exponents = shared.repeat(1, 1, size, size)
    exponents[20:40] -= torch.randint(0, 90, (20, 1, size, size), generator=generator)
    exponents[50:] = 0
    half = exponents // 2
    return (x * 2.0 ** half.double() * 2.0 ** (exponents - half).double()).to(dtype)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_of_every_magnitude_stay_below_their_bound(dtype: torch.dtype, size: int) -> None:
    x = windows_of_all_magnitudes(dtype, size)
    relative = Fraction(gamma((size**2 + 1) // 2 + ROOT_ROUNDINGS, UNIT_ROUNDOFF[dtype]))
    largest = 0.0
    for window, found in zip(x, L2Pool(size)(x).flatten().tolist(), strict=True):
        exact = exact_norm(window)
        error = abs(Fraction(found) - exact)
        assert error <= relative * exact + Fraction(DENORMAL[dtype])
        if exact > 2 * Fraction(torch.finfo(dtype).tiny):
            largest = max(largest, float(error / exact) / UNIT_ROUNDOFF[dtype])
    assert size == 1 or 0.5 <= largest <= (size**2 + 1) // 2 + ROOT_ROUNDINGS


@pytest.mark.parametrize("dtype", DTYPES)
def test_squares_neither_overflow_nor_are_lost(dtype: torch.dtype) -> None:
    high = 2.0 ** (126 if dtype == torch.float32 else 1022)
    low = DENORMAL[dtype]
    for scale in (high / 4, low, low * 2**30):
        x = scale * torch.tensor([[[[3.0, 0.0], [0.0, 4.0]]]], dtype=dtype)
        assert L2Pool(2)(x).item() == 5.0 * scale


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.0, DENORMAL[torch.float64], 1e-300, 1e-160, 1.0, 1e200, 1e307])
def test_the_jacobian_has_unit_rows_at_every_magnitude(scale: float, size: int) -> None:
    x = scale * torch.randn(2, 2 * size, size, dtype=torch.float64)
    x = x if scale > 1e-310 else scale * x.sign() if scale else x
    assert gnp_error(L2Pool(size), x) <= GNP_EXACT


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_row_at_zero_is_that_of_an_average(size: int) -> None:
    rows = jacobian(L2Pool(size), torch.zeros(1, size, size, dtype=torch.float64))
    assert torch.equal(rows, torch.full((1, size**2), 1.0 / size, dtype=torch.float64))


def test_gradients_are_those_of_the_norm() -> None:
    x = torch.randn(2, 3, 6, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(L2Pool(2), x)
    assert torch.autograd.gradgradcheck(L2Pool(2), x)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_stays_so(bad: float) -> None:
    x = torch.zeros(1, 1, 2, 4)
    x[0, 0, 1, 1] = bad
    pooled = L2Pool(2)(x).flatten()
    assert not bool(torch.isfinite(pooled[0]))
    assert pooled[1] == 0.0


@pytest.mark.parametrize("shape", [(0, 2, 4, 6), (3, 0, 4, 6), (3, 2, 0, 6)])
def test_batches_and_maps_of_nothing(shape: tuple[int, ...]) -> None:
    x = torch.zeros(shape, requires_grad=True)
    pooled = L2Pool(2)(x)
    assert pooled.shape == (*shape[:2], shape[2] // 2, shape[3] // 2)
    pooled.sum().backward()
    assert x.grad is not None
    assert x.grad.shape == shape


def test_the_layout_of_memory_does_not_matter() -> None:
    x = torch.randn(2, 3, 6, 9)
    for other in (x.contiguous(memory_format=torch.channels_last), x.mT.contiguous().mT):
        pooled = L2Pool(3)(other.requires_grad_())
        pooled.sum().backward()
        assert (pooled - L2Pool(3)(x)).abs().max() <= 1e-6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_short_types_stay_what_they_are(dtype: torch.dtype) -> None:
    x = torch.randn(2, 3, 4, 4, dtype=dtype, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        pooled = L2Pool(2)(x)
    pooled.sum().backward()
    assert pooled.dtype == x.grad.dtype == dtype
    assert (pooled.float() - L2Pool(2)(x.float())).abs().max() <= 0.05


def test_a_pool_is_exported_with_a_dynamic_batch() -> None:
    batch = torch.export.Dim("batch", min=1, max=64)
    shapes = {"x": {0: batch}}
    exported = torch.export.export(L2Pool(3), (torch.randn(2, 2, 3, 9),), dynamic_shapes=shapes)
    other = torch.randn(7, 2, 3, 9)
    assert torch.equal(exported.module()(other), L2Pool(3)(other))


@pytest.mark.parametrize("shape", [(1, 1, 3, 4), (1, 1, 4, 3), (1, 1, 1, 2)])
def test_a_ragged_map_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=f"multiple of 2 on both sides, got {shape[2]} x"):
        L2Pool(2)(torch.zeros(shape))


@pytest.mark.parametrize("size", [0, -1])
def test_a_window_of_nothing_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"size must be >= 1, got {size}; give the side"):
        L2Pool(size)
