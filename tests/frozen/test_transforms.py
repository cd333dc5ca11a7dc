"""T4 of the Fourier transforms: errors stay below their bounds, which count every stage."""

import math

import pytest
import torch

from unitmargin.checker.fourier import deployed_error
from unitmargin.frozen.transforms import (
    SCALING_ROUNDINGS,
    TWIDDLE_ERROR,
    fft_error,
    separable_error,
    transform_error,
)
from unitmargin.layers.arithmetic import gamma
from unitmargin.layers.fourier import CircularTransform
from unitmargin.layers.separable import by_kind, separable


@pytest.mark.parametrize(
    "size", [(2, 2), (4, 4), (8, 8), (3, 5), (16, 16), (9, 10), (32, 32), (1, 67), (7, 13), (5, 31)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_t4_transforms_stay_below_their_bound(size: tuple[int, int], dtype: torch.dtype) -> None:
    transform = CircularTransform(size).to(dtype)
    unit = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}[dtype]
    bound = transform_error(transform, unit)
    matrix = CircularTransform(size).matrix()
    x = torch.randn(20, 1, *size, dtype=dtype)
    x[0, 0, 0, 0] = 1e5
    real, pairs = transform.analyse(x)
    found = torch.cat((real, pairs.flatten(0, 1))).squeeze(2).mT.double()
    exact = x.double().flatten(1) @ matrix.mT
    ratio = (found - exact).norm(dim=1) / (bound * x.double().flatten(1).norm(dim=1))
    assert ratio.max() < 1
    back = transform.synthesise(real, pairs).double().flatten(1)
    expected = found @ matrix
    ratio = (back - expected).norm(dim=1) / (bound * found.norm(dim=1))
    assert ratio.max() < 1


def test_an_fft_pays_for_each_of_its_stages() -> None:
    """(11): one stage a prime factor, one for real input, and twice what a conjugate misses."""
    unit = 2.0**-24
    mu = TWIDDLE_ERROR * unit

    def signs(roundings: int) -> float:
        return mu + math.sqrt(2.0) * (1.0 + mu) * gamma(roundings, unit)

    def odd(radix: int) -> float:
        products = mu + (1.0 + mu) * gamma(radix + 5, unit)
        return mu + math.sqrt(radix) * (1.0 + mu) * products

    for size, stages in (
        ((16, 16), 8 * signs(4)),
        ((9, 10), 2 * odd(3) + signs(4) + odd(5)),
        ((1, 67), odd(67)),
        ((5, 77), odd(5) + odd(7) + odd(11)),
    ):
        total = stages + signs(5)
        halves = math.sqrt(2.0) * total / (1.0 - total)
        expected = (1.0 + halves) * (1.0 + gamma(SCALING_ROUNDINGS, unit)) - 1.0
        assert transform_error(CircularTransform(size), unit) == pytest.approx(expected, rel=1e-9)


def test_an_fft_of_a_large_prime_side_has_no_bound_in_float32() -> None:
    transform = CircularTransform((1, 131_071))
    with pytest.raises(ValueError, match=r"FFT of 1 x 131071 pixels .* got 2\.8") as refused:
        transform_error(transform, 2.0**-24)
    assert "\n" not in str(refused.value)
    assert 0.0 < transform_error(transform, 2.0**-53) < 1e-7
    with pytest.raises(ValueError, match="transforms of 1 x 131071 pixels"):
        deployed_error(1, 131_071, 2.0**-24)


@pytest.mark.parametrize("size", [(16, 16), (9, 10), (32, 32), (1, 67), (7, 13), (5, 31)])
def test_a_transform_by_a_table_a_side_stays_below_its_bound(size: tuple[int, int]) -> None:
    """(24): (10) of either side, and two products with the root of 1/2 that are summed."""
    parts = separable(size)
    x = torch.randn(20, *size, dtype=torch.float64)
    x[0, 0, 0] = 1e5
    waves = (parts.rows @ (x @ parts.columns.mT)).flatten(1)
    found = (waves[:, parts.join.columns] * parts.join.entries).sum(2)
    exact = x.flatten(1) @ CircularTransform(size).matrix()[by_kind(size)].mT
    bound = separable_error(size, 2.0**-53)
    assert ((found - exact).norm(dim=1) / (bound * x.flatten(1).norm(dim=1))).max() < 1
    assert bound < 40 * size[0] * 2.0**-47 + 40 * size[1] * 2.0**-47


def test_a_table_a_side_and_the_join_by_hand() -> None:
    """(24), of the sides 9 and 10."""
    unit = 2.0**-53
    sides = []
    for n in (9, 10):
        stored = math.sqrt(2 * n) * 2.0**-47
        sides.append(stored + gamma(n, unit) * (math.sqrt(n) + stored))
    joined = math.sqrt(2.0) * gamma(3, unit)
    # Products of two of these numbers are 1e-13 of their sum.
    expected = pytest.approx(sum(sides) + joined, rel=1e-11, abs=0.0)
    assert separable_error((9, 10), unit) == expected


def test_float64_admits_both_ways_and_float32_the_fft_alone() -> None:
    for size in ((9, 10), (32, 32), (1, 67)):
        transform, both = CircularTransform(size), (fft_error, separable_error)
        wide = max(bound(size, 2.0**-53) for bound in both)
        assert transform_error(transform, 2.0**-53) == wide
        assert transform_error(transform, 2.0**-24) == fft_error(size, 2.0**-24)
