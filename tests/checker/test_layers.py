"""The errors of each layer kind, from the formulas of docs/soundness.md with numbers by hand."""

import math

import numpy as np
import pytest

from unitmargin.checker.arithmetic import UNIT, Arithmetic, arithmetic
from unitmargin.checker.fourier import deployed_error, own_error
from unitmargin.checker.layers import KINDS, Error, Step, product

CLOSE = 1e-9
"""Relative: bounds of the norms of the matrices below are as close as that."""

SINGLE = arithmetic("float32", "float32", None)
BLOCKED = arithmetic("float32-blocked", "float32", 4)
DOUBLE = arithmetic("float64", "float64", None)


def g(roundings: int, unit: float) -> float:
    return roundings * unit / (1 - roundings * unit)


def affine(error: Error) -> tuple[float, float, float]:
    return error.slope, error.constant, error.relative


@pytest.mark.parametrize(("profile", "length"), [(SINGLE, 9), (BLOCKED, 4 + 2), (DOUBLE, 9)])
def test_dense(profile: Arithmetic, length: int) -> None:
    weight = np.full((2, 9), -1.0)
    weight[1] = 1.0  # |W| has norm root(18); W too
    step = KINDS["dense"](profile, weight=weight, bias=np.array([3.0, 4.0]))
    assert step.norm == pytest.approx(18**0.5, rel=CLOSE)
    share = g(length + 1, profile.unit)
    assert affine(step.deployed) == pytest.approx((share * 18**0.5, share * 5.0, 0.0), rel=CLOSE)
    share = g(10, UNIT)
    assert affine(step.own) == pytest.approx((share * 18**0.5, share * 5.0, 0.0), rel=CLOSE)
    assert step.growth == pytest.approx((18**0.5, 5.0), rel=CLOSE)


def convolution(profile: Arithmetic, channels: int) -> Step:
    """2 x 3 pixels; all blocks are 2 I, so S = a = 2; the bias has norm 5 on 6 pixels."""
    eye = 2.0 * np.eye(channels)
    real = np.stack([eye] * 2)
    pairs = np.stack([np.stack([eye, 0.0 * eye])] * 2)
    bias = np.zeros(channels)
    bias[:2] = 3.0, 4.0
    return KINDS["circular_convolution"](
        profile, map_size=[2, 3], real=real, pairs=pairs, bias=bias
    )


def convolution_error(turn: float, sums: float, unit: float) -> tuple[float, float]:
    bias = 5.0 * math.sqrt(6.0)
    slope, constant = turn * 2.0 + sums * (1.0 + turn) * 2.0, sums * bias
    slope, constant = slope + g(4, unit) * (2.0 + slope), constant + g(4, unit) * (bias + constant)
    return slope + turn * (2.0 + slope), constant + turn * (bias + constant)


@pytest.mark.parametrize("profile", [SINGLE, DOUBLE])
def test_circular_convolution(profile: Arithmetic) -> None:
    step = convolution(profile, 5)
    assert step.norm == pytest.approx(2.0, rel=CLOSE)
    turn = deployed_error(2, 3, profile.unit)
    expected = convolution_error(turn, g(7, profile.unit), profile.unit)
    assert affine(step.deployed) == pytest.approx((*expected, 0.0), rel=CLOSE)
    expected = convolution_error(own_error(2, 3), g(7, UNIT), UNIT)
    assert affine(step.own) == pytest.approx((*expected, 0.0), rel=CLOSE)


def test_circular_convolution_in_blocks_and_in_float64() -> None:
    turn = deployed_error(2, 3, SINGLE.unit)
    expected = convolution_error(turn, g(4 + 1 + 2, SINGLE.unit), SINGLE.unit)
    assert affine(convolution(BLOCKED, 5).deployed) == pytest.approx((*expected, 0.0), rel=CLOSE)
    slope, constant = convolution_error(deployed_error(2, 3, UNIT), g(6, UNIT), UNIT)
    slope, constant = (
        slope + (2.0 + slope) * SINGLE.unit,
        (constant + (5.0 * math.sqrt(6.0) + constant) * SINGLE.unit),
    )
    assert affine(convolution(BLOCKED, 4).deployed) == pytest.approx(
        (slope, constant, 0.0), rel=CLOSE
    )


def test_transforms_by_hand() -> None:
    unit = 2.0**-24
    table = math.sqrt(12.0) * (2.0**-47 + 2.0**-52 + unit)
    assert deployed_error(2, 3, unit) == pytest.approx(
        table + math.sqrt(6.0) * g(6, unit), rel=0.01
    )
    stages = sum(
        2 * unit + g(p + 2, unit) * (math.sqrt(p) + 2 * unit) for p in (3, 3, 2, 5, 2)
    )  # 9 x 10, and one for real input
    fft = stages / (1 - stages) + g(8, unit)
    assert deployed_error(9, 10, unit) == pytest.approx(fft, rel=CLOSE)
    single = math.sqrt(2.0) * 12 * UNIT + math.sqrt(2.0) * g(3, UNIT)
    double = math.sqrt(4.0) * 12 * UNIT + math.sqrt(4.0) * g(4, UNIT)
    assert own_error(1, 2) == pytest.approx(math.sqrt(2.0) * (single + double + 2 * UNIT), rel=0.05)


def test_normalize() -> None:
    step = KINDS["normalize"](SINGLE, mean=np.array([0.5, 0.0]), std=np.array([0.25, 2.0]))
    assert step.norm == pytest.approx(4.0, rel=CLOSE)
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
    ],
)
def test_moves_and_comparisons_are_exact(kind: str, configuration: dict[str, int]) -> None:
    step = KINDS[kind](SINGLE, **configuration)
    assert (step.norm, step.own, step.deployed) == (1.0, Error(), Error())
    x = np.random.default_rng(0).normal(size=(3, 4, 6, 4))
    moved = step.evaluate(x)
    assert set(np.abs(moved).ravel()) <= set(np.abs(x).ravel())
    assert np.linalg.norm(moved[0] - moved[1]) <= np.linalg.norm(x[0] - x[1])


def test_products_are_sums_of_chunks() -> None:
    generator = np.random.default_rng(1)
    for terms in (1, 64, 65, 200):
        left, right = generator.normal(size=(2, 3, terms)), generator.normal(size=(2, terms, 4))
        assert np.abs(product(left, right) - left @ right).max() <= 1e-13
