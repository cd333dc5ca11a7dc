"""The checker's transform: exact frequencies, and errors within their bounds."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from unitmargin.checker.arithmetic import UNIT
from unitmargin.checker.fourier import (
    TABLE,
    _table,
    convolve,
    deployed_error,
    frequencies,
    own_error,
    transform,
)
from unitmargin.checker.reading import Array
from unitmargin.checker.step import product
from unitmargin.frozen.profiles import PROFILES
from unitmargin.frozen.transforms import transform_error
from unitmargin.layers import fourier as deployed

SIZES = [(1, 1), (2, 2), (1, 5), (3, 4), (5, 3), (7, 7), (8, 8), (6, 11), (9, 8), (16, 16)]


@pytest.mark.parametrize("size", SIZES)
def test_frequencies_are_those_of_the_file(size: tuple[int, int]) -> None:
    assert frequencies(*size) == tuple(deployed.frequencies(*size))


def test_the_table_is_as_exact_as_it_says() -> None:
    for length in (1, 2, 3, 8, 14):
        cosine, sine = _table(length)
        for i in range(length):
            for j in range(length):
                turn = Fraction(i * j % length, length)
                # A Taylor polynomial in rational arithmetic, at an angle of at most half a turn.
                angle = (turn - (turn > Fraction(1, 2))) * 2 * PI
                real, imaginary = taylor(angle)
                root = Fraction(math.isqrt(length * 10**60), 10**30)
                assert abs(Fraction(cosine[i, j]) * root - real) <= TABLE
                assert abs(Fraction(sine[i, j]) * root - imaginary) <= TABLE


PI = Fraction("3.14159265358979323846264338327950288419716939937510582")


def taylor(angle: Fraction) -> tuple[Fraction, Fraction]:
    term, sums = Fraction(1), [Fraction(0), Fraction(0), Fraction(0), Fraction(0)]
    for n in range(1, 42):
        sums[(n - 1) % 4] += term
        term = (term * angle / n).limit_denominator(10**60)
    return sums[0] - sums[2], sums[1] - sums[3]


def test_the_transform_is_that_of_fft_and_its_inverse() -> None:
    x = np.random.default_rng(0).normal(size=(6, 5, 2, 3))
    real, imaginary = transform((x, np.zeros_like(x)), -1.0)
    truth = np.fft.fft2(x, axes=(0, 1), norm="ortho")
    assert np.abs(real + 1j * imaginary - truth).max() <= 1e-14
    back, nothing = transform((real, imaginary), 1.0)
    assert np.abs(back - x).max() <= 1e-14
    assert np.abs(nothing).max() <= 1e-14


@pytest.mark.parametrize("size", SIZES)
def test_a_transform_and_back_stays_within_the_bound(size: tuple[int, int]) -> None:
    bound = own_error(*size)
    for x in (
        np.random.default_rng(1).normal(size=(*size, 1, 40)),
        np.ones((*size, 1, 1)),
        1e5 * (np.arange(size[0] * size[1]).reshape(*size, 1, 1) == size[1] // 2) + 1.0,
    ):
        there = transform((x, np.zeros_like(x)), -1.0)
        back, _ = transform(there, 1.0)
        error = np.linalg.norm(back - x, axis=(0, 1)) / np.linalg.norm(x, axis=(0, 1))
        assert error.max() <= 2.0 * bound * (1.0 + bound)
    assert bound <= 1e3 * UNIT * sum(size)


@pytest.mark.parametrize("size", [(2, 2), (3, 5), (4, 7), (9, 8)])
def test_convolutions_by_their_definition(size: tuple[int, int]) -> None:
    """A kernel of all frequencies, against the sum over taps."""
    height, width = size
    generator = np.random.default_rng(2)
    kernel = generator.normal(size=(3, 2, *size))
    x = generator.normal(size=(4, 2, *size))
    spectrum = np.fft.fft2(kernel)
    own, other = frequencies(*size)
    real = np.stack([spectrum[..., row, column].real for row, column in own])
    parts = [(spectrum[..., r, c].real, spectrum[..., r, c].imag) for r, c in other]
    pairs = np.array(parts).reshape(len(other), 2, 3, 2)
    truth: Array = np.zeros((4, 3, *size))
    for row in range(height):
        for column in range(width):
            moved = np.roll(x, (row, column), axis=(2, 3))
            truth += np.einsum("oi,bihw->bohw", kernel[..., row, column], moved)
    assert np.abs(convolve(x, real, pairs, product) - truth).max() <= 1e-13


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
@pytest.mark.parametrize("size", SIZES)
def test_the_deployed_transform_stays_within_its_bound(
    size: tuple[int, int], profile: object
) -> None:
    unit, dtype = profile.unit, profile.dtype  # type: ignore[attr-defined]
    bound = deployed_error(*size, unit)
    transform_ = deployed.CircularTransform(size).to(dtype)
    x = torch.cat((torch.randn(30, 2, *size), torch.ones(1, 2, *size))).to(dtype)
    computed = torch.cat([part.double().flatten(0, -3) for part in transform_.analyse(x)])
    wide = deployed.CircularTransform(size).double()
    exact = torch.cat([part.flatten(0, -3) for part in wide.analyse(x.double())])
    error = (computed - exact).norm(dim=0) / x.double().flatten(2).norm(dim=2)
    assert float(error.max()) <= bound + transform_error(wide, UNIT)
    # The maker derives its own bound; neither is much above the other.
    assert 0.5 <= bound / transform_error(transform_, unit) <= 2.0
