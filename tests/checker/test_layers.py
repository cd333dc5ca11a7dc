"""The errors of each layer kind, from the formulas of docs/soundness.md with numbers by hand."""

import math

import numpy as np
import pytest

from unitmargin.checker.arithmetic import PROFILES, UNIT, Arithmetic
from unitmargin.checker.fourier import counts, deployed_error, own_error
from unitmargin.checker.layers import KINDS
from unitmargin.checker.step import Error, Step, product, sound

CLOSE = 1e-9
"""Relative: bounds of the norms of the matrices below are as close as that."""

SINGLE = PROFILES["float32"]
DOUBLE = PROFILES["float64"]


def g(roundings: int, unit: float) -> float:
    return roundings * unit / (1 - roundings * unit)


def affine(error: Error) -> tuple[float, float, float]:
    return error.slope, error.constant, error.relative


@pytest.mark.parametrize("profile", [SINGLE, DOUBLE])
def test_dense(profile: Arithmetic) -> None:
    weight = np.full((2, 9), -1.0)
    weight[1] = 1.0  # |W| has norm root(18); W too
    step = KINDS["dense"].make(profile, weight=weight, bias=np.array([3.0, 4.0]))
    assert step.norm == pytest.approx(18**0.5, rel=CLOSE, abs=0.0)
    share = g(10, profile.unit)
    assert affine(step.deployed) == pytest.approx(
        (share * 18**0.5, share * 5.0, 0.0), rel=CLOSE, abs=0.0
    )
    share = g(10, UNIT)
    assert affine(step.own) == pytest.approx(
        (share * 18**0.5, share * 5.0, 0.0), rel=CLOSE, abs=0.0
    )
    assert step.growth == pytest.approx((18**0.5, 5.0), rel=CLOSE, abs=0.0)


def convolution(profile: Arithmetic, channels: int, height: int = 2, width: int = 3) -> Step:
    """All blocks are 2 I, so S = a = 2; the bias has norm 5."""
    eye = 2.0 * np.eye(channels)
    real, pairs = counts(height, width)
    return KINDS["circular_convolution"].make(
        profile,
        map_size=[height, width],
        real=np.stack([eye] * real),
        pairs=np.stack([np.stack([eye, 0.0 * eye])] * pairs),
        bias=np.array([3.0, 4.0, *[0.0] * (channels - 2)]),
    )


def convolution_error(
    turn: float, length: int, unit: float, output: float = 0.0, pixels: int = 6
) -> tuple[float, float, float]:
    bias = 5.0 * math.sqrt(pixels)
    slope, constant = (
        turn * 2.0 + g(length + 1, unit) * (1 + turn) * 2.0,
        g(length + 3, unit) * bias,
    )
    slope, constant = slope + turn * (2.0 + slope), constant + turn * (bias + constant)
    return slope + output * (2.0 + slope), constant + output * (bias + constant), 0.0


@pytest.mark.parametrize("profile", [SINGLE, DOUBLE])
def test_circular_convolution(profile: Arithmetic) -> None:
    step = convolution(profile, 5)
    assert step.norm == pytest.approx(2.0, rel=CLOSE, abs=0.0)
    turn = deployed_error(2, 3, profile.unit)
    expected = convolution_error(turn, 5, profile.unit)
    assert affine(step.deployed) == pytest.approx(expected, rel=CLOSE, abs=0.0)
    expected = convolution_error(own_error(2, 3), 5, UNIT, output=UNIT)
    assert affine(step.own) == pytest.approx(expected, rel=CLOSE, abs=0.0)


def test_transforms_by_hand() -> None:
    """(C4) and (C5), term by term: each is a hundredth of the result at least."""
    unit = 2.0**-24
    table = math.sqrt(12.0) * (40 * UNIT + unit)
    assert deployed_error(2, 3, unit) == pytest.approx(
        table + g(6, unit) * (math.sqrt(6.0) + table), rel=CLOSE, abs=0.0
    )
    table = math.sqrt(12.0) * 40 * UNIT
    assert deployed_error(2, 3, UNIT) == pytest.approx(
        table + g(6, UNIT) * (math.sqrt(6.0) + table), rel=CLOSE, abs=0.0
    )
    turned = math.sqrt(8.0) + math.sqrt(2.0)  # a complex product, and its root of unity
    odd = sum(turned + math.sqrt(2.0 * p) * (p + 4) for p in (3, 3, 5))
    total = unit * (odd + turned + 1.0 + turned + 2.0)  # 9 x 10, and one for real input
    fft = (1 + math.sqrt(2.0) * total / (1 - total)) * (1 + g(6, unit)) - 1
    assert deployed_error(9, 10, unit) == pytest.approx(fft, rel=CLOSE, abs=0.0)
    sides = [math.sqrt(2.0 * p) * 40 * UNIT for p in (9, 10)]
    sides = [s + g(p, UNIT) * (math.sqrt(p) + s) for p, s in zip((9, 10), sides, strict=True)]
    joined = sum(sides) + 2.0 * g(3, UNIT)
    assert deployed_error(9, 10, UNIT) == pytest.approx(joined, rel=CLOSE, abs=0.0)
    down = math.sqrt(2.0 * 3) * (g(4, UNIT) + UNIT)
    across = math.sqrt(2.0) * (g(3, UNIT) + math.sqrt(2.0) * UNIT)
    assert own_error(3, 2) == pytest.approx(down + across + UNIT, rel=CLOSE, abs=0.0)
    long = math.sqrt(2.0 * 129) * (g(67, UNIT) + UNIT)  # three sums of up to 64 products
    short = g(2, UNIT) + math.sqrt(2.0) * UNIT
    assert own_error(129, 1) == pytest.approx(long + short + UNIT, rel=CLOSE, abs=0.0)


def test_normalize() -> None:
    step = KINDS["normalize"].make(SINGLE, mean=np.array([0.5, 0.0]), std=np.array([0.25, 2.0]))
    assert step.norm == pytest.approx(4.0, rel=CLOSE, abs=0.0)
    assert step.norm >= 4.0
    assert affine(step.deployed) == pytest.approx((0.0, 0.0, g(3, SINGLE.unit)), abs=1e-20)
    assert affine(step.own) == pytest.approx((0.0, 0.0, g(3, UNIT)), abs=1e-25)
    assert step.evaluate(np.ones((1, 2, 1))).tolist() == [[[2.0], [0.5]]]


@pytest.mark.parametrize(
    ("kind", "configuration"),
    [
        ("flatten", {}),
        ("pixel_unshuffle", {"factor": 2}),
        ("max_pool", {"size": 2}),
        ("abs", {}),
        ("maxmin", {}),
        ("oplu", {}),
        ("groupsort", {"size": 4}),
        ("partial_abs", {"parts": 4}),
    ],
)
def test_moves_and_comparisons_are_exact(kind: str, configuration: dict[str, int]) -> None:
    step = KINDS[kind].make(SINGLE, **configuration)
    assert (step.norm, step.own, step.deployed) == (1.0, Error(), Error())
    x = np.random.default_rng(0).normal(size=(3, 4, 6, 4))
    moved = step.evaluate(x)
    assert set(np.abs(moved).ravel()) <= set(np.abs(x).ravel())
    assert np.linalg.norm(moved[0] - moved[1]) <= np.linalg.norm(x[0] - x[1])


def test_partial_abs_folds_the_first_channels() -> None:
    step = KINDS["partial_abs"].make(SINGLE, parts=3)
    x = -np.arange(1.0, 7.0)[None]
    assert step.evaluate(x).tolist() == [[1.0, 2.0, -3.0, -4.0, -5.0, -6.0]]
    assert x[0, 0] == -1.0
    for shape in ((4,), (2, 3, 3)):
        with pytest.raises(ValueError, match=f"{shape[0]} channels in groups of 3"):
            step.shapes(shape)


@pytest.mark.parametrize("wrong", [-1e-300, math.nan])
def test_a_bound_is_a_number_of_at_least_zero(wrong: float) -> None:
    good = Step(np.abs)
    assert sound(good) is good
    for step in (
        good._replace(norm=wrong),
        good._replace(shift=wrong),
        good._replace(growth=(1.0, wrong)),
        good._replace(own=Error(wrong)),
        good._replace(deployed=Error(0.0, wrong)),
    ):
        with pytest.raises(ValueError, match="negative or no numbers"):
            sound(step)


def test_underflow_is_paid_for() -> None:
    """Each step loses numbers of the size of the smallest normal one, times what follows it."""
    tiny = 2.0**-126
    lost = KINDS["circular_convolution"].make(
        SINGLE, map_size=[1, 1], real=2.0**40 * np.ones((1, 1, 1)), pairs=np.zeros((0, 2, 1, 1)),
        bias=np.zeros(1),
    ).deployed.constant  # fmt: skip
    assert 2.0**40 * tiny <= lost <= 1e-9
    normalise = KINDS["normalize"].make(SINGLE, mean=np.zeros(1), std=np.full(1, 2.0**-40))
    assert 2.0**40 * tiny <= normalise.deployed.constant <= 1e-9
    assert (
        64.0 * tiny <= KINDS["scaled_average_pool"].make(SINGLE, size=8).deployed.constant <= 1e-20
    )


@pytest.mark.parametrize("size", [[100_000, 100_000], [2, 2048], [3, 1], [1, 1]])
def test_a_map_is_compared_before_it_is_made(size: list[int]) -> None:
    """Four self-conjugate blocks and no pairs are those of a 2 x 2 map alone."""
    with pytest.raises(ValueError, match=r"blocks \(4, 1, 1\), \(0, 2, 1, 1\)"):
        KINDS["circular_convolution"].make(
            SINGLE, map_size=size, real=np.ones((4, 1, 1)), pairs=np.ones((0, 2, 1, 1)),
            bias=np.zeros(1),
        )  # fmt: skip


def test_products_are_sums_of_chunks() -> None:
    generator = np.random.default_rng(1)
    for terms in (1, 64, 65, 200):
        left, right = generator.normal(size=(2, 3, terms)), generator.normal(size=(2, terms, 4))
        assert np.abs(product(left, right) - left @ right).max() <= 1e-13
