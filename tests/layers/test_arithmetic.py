"""Bounds of errors have a range; norms, sums and products are not below the true ones."""

import pytest
import torch

from unitmargin.layers.arithmetic import (
    compounded,
    gamma,
    norm_bounds,
    product_up,
    sum_up,
)

DENORMAL = 2.0**-1074


@pytest.mark.parametrize("share", [-1e-9, 0.5000001, 1.0, 2.0, torch.inf, torch.nan])
def test_errors_beyond_their_range_are_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1/2\]"):
        compounded(share)


@pytest.mark.parametrize("length", [-1, 2**23 + 1, 2**25])
def test_sums_beyond_their_range_are_refused(length: int) -> None:
    assert gamma(2**23, 2.0**-24) == 1.0
    with pytest.raises(ValueError, match="length"):
        gamma(length, 2.0**-24)


@pytest.mark.parametrize("exponent", [-1074, -1060, -600, -511, 0, 511, 600, 1020])
def test_norms_of_rows_of_any_magnitude(exponent: int) -> None:
    """The norm of (3, 4, 0, ...) times a power of two is 5 times it."""
    power = 2.0 ** (exponent // 2) * 2.0 ** (exponent - exponent // 2)
    rows = torch.zeros(2, 7, dtype=torch.float64)
    rows[0, 0], rows[0, 1] = 3.0 * power, -4.0 * power
    small, none = norm_bounds(rows).tolist()
    assert none == 0.0
    assert 5.0 * power <= small <= max(5.0 * power * (1 + 1e-14), 6.0 * power)


def test_norms_of_rows_that_are_not_finite_are_infinite() -> None:
    rows = torch.tensor([[1.0, torch.nan], [torch.inf, 0.0], [3.0, 4.0]])
    assert norm_bounds(rows).tolist()[:2] == [torch.inf, torch.inf]
    assert norm_bounds(torch.zeros(2, 0)).tolist() == [0.0, 0.0]


def test_norms_of_millions_of_entries_pay_for_their_sum() -> None:
    """The same number many times over: its exact norm is known."""
    rows = torch.full((1, 2**22), 1.0 + 2.0**-30, dtype=torch.float64)
    exact = (1.0 + 2.0**-30) * 2.0**11
    assert exact <= float(norm_bounds(rows)) <= exact * (1.0 + 2.0**-29)
    assert float(norm_bounds(rows)) / exact - 1.0 >= 2.0**-53 * 2**21


def test_sums_and_products_of_bounds_are_rounded_up() -> None:
    tiny = DENORMAL
    assert product_up(2.0**-600, 2.0**-600) == tiny
    assert product_up(1.5 * 2.0**-537, 2.0**-537) >= 1.5 * tiny
    assert sum_up(1.0, 2.0**-60) > 1.0
    assert (product_up(0.0, torch.inf), sum_up(0.0, 0.25)) == (0.0, 0.25)
