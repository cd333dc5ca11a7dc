"""The checker's transform: exact frequencies, and errors within their bounds."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from unitmargin.checker.arithmetic import UNIT
from unitmargin.checker.fourier import (
    TABLE,
    analyse,
    convolution,
    counts,
    deployed_error,
    frequencies,
    own_error,
    synthesise,
    waves,
)
from unitmargin.checker.reading import Array
from unitmargin.frozen.profiles import PROFILES
from unitmargin.frozen.transforms import transform_error
from unitmargin.layers import fourier as deployed

SIZES = [(1, 1), (2, 2), (1, 5), (3, 4), (5, 3), (7, 7), (8, 8), (6, 11), (9, 8), (16, 16)]


@pytest.mark.parametrize("size", SIZES)
def test_frequencies_are_those_of_the_file(size: tuple[int, int]) -> None:
    own, other = ([tuple(point) for point in kept.T.tolist()] for kept in frequencies(*size))
    assert (own, other) == tuple(deployed.frequencies(*size))
    assert counts(*size) == (len(own), len(other)) == deployed.count_frequencies(size)


@pytest.mark.parametrize("length", [1, 2, 3, 8, 14, 97, 1024])
def test_cosines_and_sines_are_rounded_once(length: int) -> None:
    own = waves(length)
    for step in range(0, length, -(-length // 32)):
        # A Taylor polynomial in rational arithmetic, at an angle of at most half a turn.
        turn = Fraction(step, length)
        real, imaginary = taylor((turn - (turn > Fraction(1, 2))) * 2 * PI)
        assert abs(Fraction(own.cosines[step]) - real) <= TABLE / 2
        assert abs(Fraction(own.sines[step]) - imaginary) <= TABLE / 2
    cosine, sine = own.table(length)
    assert (cosine == cosine.T).all()
    assert (cosine**2 + sine**2 - 1.0).max() <= 4 * TABLE


PI = Fraction("3.14159265358979323846264338327950288419716939937510582")


def taylor(angle: Fraction) -> tuple[Fraction, Fraction]:
    term, sums = Fraction(1), [Fraction(0), Fraction(0), Fraction(0), Fraction(0)]
    for n in range(1, 60):
        sums[(n - 1) % 4] += term
        term = (term * angle / n).limit_denominator(10**60)
    return sums[0] - sums[2], sums[1] - sums[3]


@pytest.mark.parametrize("size", SIZES)
def test_the_transform_is_that_of_fft_and_its_inverse(size: tuple[int, int]) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, *size))
    rows, columns = map(waves, size)
    real, imaginary = analyse(x, rows, columns)
    truth = np.fft.rfft2(x).reshape(6, size[0], -1).transpose(1, 2, 0)
    assert np.abs(real + 1j * imaginary - truth).max() <= 1e-12
    back = synthesise((real, imaginary), rows, columns)
    assert np.abs(back.reshape(x.shape) - x).max() <= 1e-14


def exact_analysis(x: Array) -> Array:
    """The whole plane of one map, in rational arithmetic but for 60 digits of its roots."""
    height, width = x.shape
    turned = {
        (p, q): taylor(2 * PI * (turn := Fraction(p, height) + Fraction(q, width))
                       - 2 * PI * round(turn))
        for p in range(height) for q in range(width)
    }  # fmt: skip
    plane = np.zeros((height, width, 2), dtype=object)
    for f, g in np.ndindex(height, width):
        for p, q in np.ndindex(height, width):
            cosine, sine = turned[f * p % height, g * q % width]
            plane[f, g] += np.array([Fraction(x[p, q]) * cosine, -Fraction(x[p, q]) * sine])
    return plane


@pytest.mark.parametrize("size", [(1, 5), (4, 6), (3, 4)])
def test_errors_of_a_transform_are_within_the_bound(size: tuple[int, int]) -> None:
    """Of the plane of all frequencies, in which a kept one stands for its mirror image."""
    bound, ratios = own_error(*size), []
    for x in (
        np.random.default_rng(1).normal(size=size),
        1e5 * (np.arange(size[0] * size[1]).reshape(size) == size[1] // 2) + 1.0,
    ):
        real, imaginary = analyse(x[None, None], *map(waves, size))
        squared = 0.0
        exact = exact_analysis(x)
        for f, g in np.ndindex(size):
            mirrored = g > size[1] // 2
            row, column = (-f % size[0], size[1] - g) if mirrored else (f, g)
            sign = -1 if mirrored else 1
            squared += float(Fraction(real[row, column, 0]) - exact[f, g][0]) ** 2
            squared += float(sign * Fraction(imaginary[row, column, 0]) - exact[f, g][1]) ** 2
        norm = np.linalg.norm(x) * math.sqrt(size[0] * size[1])
        assert math.sqrt(squared) / norm <= bound
        ratios.append(math.sqrt(squared) / norm / bound)
    assert max(ratios) > 0.01  # a bound that no error comes near would prove nothing


@pytest.mark.parametrize("size", SIZES)
def test_a_transform_and_back_stays_within_the_bound(size: tuple[int, int]) -> None:
    bound = own_error(*size)
    rows, columns = map(waves, size)
    for x in (
        np.random.default_rng(1).normal(size=(40, 1, *size)),
        np.ones((1, 1, *size)),
        1e5 * (np.arange(size[0] * size[1]).reshape(1, 1, *size) == size[1] // 2) + 1.0,
    ):
        back = synthesise(analyse(x, rows, columns), rows, columns).reshape(x.shape)
        error = np.linalg.norm(back - x, axis=(2, 3)) / np.linalg.norm(x, axis=(2, 3))
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
    own, other = (kept.T.tolist() for kept in frequencies(*size))
    real = np.stack([spectrum[..., row, column].real for row, column in own])
    parts = [(spectrum[..., r, c].real, spectrum[..., r, c].imag) for r, c in other]
    pairs = np.array(parts).reshape(len(other), 2, 3, 2)
    truth: Array = np.zeros((4, 3, *size))
    for row in range(height):
        for column in range(width):
            moved = np.roll(x, (row, column), axis=(2, 3))
            truth += np.einsum("oi,bihw->bohw", kernel[..., row, column], moved)
    assert np.abs(convolution(height, width, real, pairs)(x) - truth).max() <= 1e-13


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
