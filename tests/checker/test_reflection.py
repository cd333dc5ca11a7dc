"""Reflections in the checker: by hand, against dense matrices, and refused."""

import numpy as np
import pytest
import torch
from reflecting import parts, reflected, reflection
from slicing import ARRANGED

from unitmargin.checker.arithmetic import PROFILES, UNIT
from unitmargin.checker.layers import KINDS
from unitmargin.checker.step import Step
from unitmargin.layers.slices import Arrangement

CLOSE = 1e-9

ROUNDING = 1e-12

SINGLE = PROFILES["float32"]

ROWS = np.array([[[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0]]])
"""Twice two orthonormal rows; their absolute values have the norm root of 8."""

every = pytest.mark.parametrize(("arrangement", "channels"), ARRANGED.values(), ids=ARRANGED)


def g(roundings: int, unit: float) -> float:
    return roundings * unit / (1 - roundings * unit)


def windows(bias: tuple[float, float] = (3.0, 4.0), scale: float = 1.0) -> Step:
    return KINDS["window_reflection"].make(
        SINGLE, map_size=[2, 4], size=2, shift=1, weight=scale * ROWS, bias=np.array([bias])
    )


def by_hand(unit: float, second: int, kept: float) -> tuple[float, float]:
    """Slope and constant of what two windows lose, S = 2 and a bias of norm 5 in each."""
    modulus, bias = 8.0**0.5, 5.0 * 2.0**0.5
    slope, constant = g(5, unit) * modulus, g(5, unit) * bias
    back = 2.0 * g(second, unit) * modulus
    return (
        4.0 * slope + g(second, unit) * kept + back * (2.0 + slope),
        4.0 * constant + back * (bias + constant),
    )


def test_a_reflection_by_hand() -> None:
    step, bias = windows(), 5.0 * 2.0**0.5
    assert step.norm == pytest.approx(7.0, rel=CLOSE, abs=0.0)
    assert step.shift == pytest.approx(4.0 * bias, rel=CLOSE, abs=0.0)
    assert step.deployed[:2] == pytest.approx(by_hand(SINGLE.unit, 3, 1.0), rel=CLOSE, abs=0.0)
    slope, constant = by_hand(UNIT, 2, 0.0)
    rounded = slope + UNIT * (7.0 + slope), constant + UNIT * (4.0 * bias + constant)
    assert step.own[:2] == pytest.approx(rounded, rel=CLOSE, abs=0.0)
    assert step.growth[0] >= 8.0**0.5 + 1.0 + 2.0 * 8.0**0.5 * 2.0
    assert step.growth[1] >= 2.0 * 8.0**0.5 * bias


def test_a_small_weight_has_norm_one_and_a_large_one_more() -> None:
    assert windows(scale=0.25).norm == pytest.approx(1.0, rel=CLOSE, abs=0.0)
    assert windows(scale=0.5).norm == pytest.approx(1.0, rel=CLOSE, abs=0.0)
    assert windows(scale=2.0).norm == pytest.approx(31.0, rel=CLOSE, abs=0.0)
    assert min(windows(scale=scale).norm for scale in (0.0, 0.25, 0.5)) >= 1.0


def test_underflow_of_a_reflection_is_paid_for() -> None:
    """Of eight entries and slices of four: eight operations for each entry of the coordinates,
    times 4 on the way back, and twelve for each of the outputs."""
    found = windows(bias=(0.0, 0.0)).deployed.constant / SINGLE.smallest
    assert found == pytest.approx(8.0 * 3.0 * (4.0 * 64.0 + 96.0), rel=1e-5)


@every
def test_slices_are_those_of_their_definition(arrangement: Arrangement, channels: int) -> None:
    x, weight, bias = parts(arrangement, channels)
    layer = reflection(arrangement, channels)
    step = KINDS[layer.kind].make(
        SINGLE, **layer.configuration(), weight=weight.numpy(), bias=bias.numpy()
    )
    found = step.evaluate(x.numpy())
    for one, image in zip(x, found, strict=True):
        expected, dense = reflected(one.flatten(), weight, bias, arrangement, channels)
        assert np.abs(image.ravel() - expected.numpy()).max() <= ROUNDING
        assert float(torch.linalg.matrix_norm(dense, 2)) <= step.norm
    assert step.shapes(tuple(x.shape[1:])) == [found.shape[1:]]
    zero = step.evaluate(np.zeros((1, *x.shape[1:])))
    assert np.linalg.norm(zero) <= step.shift
    with pytest.raises(ValueError, match="behind activations"):
        step.shapes((channels + 1, *arrangement.map_size))


@pytest.mark.parametrize(
    ("weight", "bias"),
    [((1, 5, 4), (1, 5)), ((1, 2, 4), (1, 3)), ((2, 2, 4), (2, 2)), ((1, 2, 4), (2,)),
     ((2, 4), (2,)), ((1, 2, 5), (1, 2)), ((1, 0, 4), (1, 0))],
)  # fmt: skip
def test_parts_that_do_not_belong_together_are_refused(
    weight: tuple[int, ...], bias: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="weight"):
        KINDS["window_reflection"].make(
            SINGLE, map_size=[2, 4], size=2, shift=0, weight=np.ones(weight), bias=np.ones(bias)
        )
