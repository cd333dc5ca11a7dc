"""Intervals and standard errors: against closed forms and published numbers."""

import math

import pytest
import torch

from unitmargin.reporting.statistics import (
    interval,
    median,
    paired_difference,
    share_interval,
    signed,
    unpaired_difference,
)

NEWCOMBE = [
    (81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611),
    (1, 29, 0.0061, 0.1718),
]  # fmt: skip
"""R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3."""


def indicators(*counts: tuple[int, float, float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Two lists of 0 and 1: so many samples of each pair."""
    pairs = [pair for times, *pair in counts for _ in range(times)]
    first, second = torch.tensor(pairs, dtype=torch.float64).T
    return first, second


@pytest.mark.parametrize(("count", "of", "low", "high"), NEWCOMBE)
def test_wilsons_interval_is_the_published_one(
    count: int, of: int, low: float, high: float
) -> None:
    assert share_interval(count, of) == pytest.approx([low, high], abs=5e-5)


def test_ends_are_exact_where_all_or_none_are() -> None:
    for of in (1, 7, 10**6):
        none, every = share_interval(0, of), share_interval(of, of)
        assert none is not None
        assert every is not None
        assert none[0] == 0.0
        assert every[1] == 1.0
        assert none[1] == pytest.approx(1.0 - every[0])
    assert share_interval(0, 0) is None


def test_a_paired_error_is_mcnemars() -> None:
    n, b, c = 200, 14, 5
    first, second = indicators((b, 1, 0), (c, 0, 1), (150, 1, 1), (n - b - c - 150, 0, 0))
    value, error, chance = paired_difference(first, second)
    assert value == pytest.approx((b - c) / n)
    assert error == pytest.approx(math.sqrt(b + c - (b - c) ** 2 / n) / n)
    assert paired_difference(second, first) == pytest.approx((-value, error, chance))


def test_samples_on_which_runs_agree_add_no_error() -> None:
    same, _ = indicators((30, 1, 0), (70, 0, 0))
    found = paired_difference(same, same)
    assert found == (0.0, 0.0, 1.0)
    assert not found.clear


def test_an_unpaired_error_has_both_variances() -> None:
    first, second = torch.tensor([1.0] * 30 + [0.0] * 70), torch.tensor([1.0] * 20 + [0.0] * 20)
    value, error, _ = unpaired_difference(first.double(), second.double())
    assert value == pytest.approx(0.3 - 0.5)
    assert error == pytest.approx(math.sqrt(0.3 * 0.7 / 100 + 0.25 / 40))


def test_clear_is_more_than_two_errors() -> None:
    many, nobody = indicators((10, 1, 0), (90, 0, 0))
    assert paired_difference(many, nobody).clear
    first, second = indicators((3, 1, 0), (1, 0, 1), (96, 0, 0))
    assert not paired_difference(first, second).clear


@pytest.mark.parametrize(
    ("ahead", "behind", "clear"), [(4, 0, False), (5, 0, False), (6, 0, True), (15, 5, True)]
)
def test_few_samples_that_differ_are_not_clear(ahead: int, behind: int, clear: bool) -> None:
    first, second = indicators((ahead, 1, 0), (behind, 0, 1), (100 - ahead - behind, 0, 0))
    found = paired_difference(first, second)
    tail = sum(math.comb(ahead + behind, k) for k in range(ahead, ahead + behind + 1))
    assert found.chance == pytest.approx(2.0 * tail / 2 ** (ahead + behind))
    assert abs(found.value) > 2.0 * found.error
    assert found.clear == clear


@pytest.mark.parametrize(("count", "of", "clear"), [(4, 10**4, False), (7, 10**4, True)])
def test_few_of_unpaired_samples_are_not_clear(count: int, of: int, clear: bool) -> None:
    first, nothing = torch.zeros(of).double(), torch.zeros(of).double()
    first[:count] = 1.0
    found = unpaired_difference(first, nothing)
    assert found.chance == pytest.approx(2.0 * math.comb(of, count) / math.comb(2 * of, count))
    assert abs(found.value) > 2.0 * found.error
    assert found.clear == clear


@pytest.mark.parametrize("count", [1, 2, 5, 8, 101, 200])
def test_the_median_is_the_quantile_bit_for_bit(count: int) -> None:
    for dtype in (torch.float32, torch.float64):
        values = torch.randn(count).exp().to(dtype)
        assert median(values.double()) == float(values.double().quantile(0.5))
    assert median(torch.zeros(0).double()) is None


def test_medians_of_large_test_sets_are_known() -> None:
    assert median(torch.ones(2**24 + 1).double()) == 1.0


def test_two_samples_are_clear_of_nothing() -> None:
    for one in (torch.ones(2).double(), torch.tensor([0.5, 0.5]).double()):
        for found in (paired_difference(one, 0.0 * one), unpaired_difference(one, 0.0 * one)):
            assert found.error == 0.0
            assert not found.clear
    many = 0.5 * torch.ones(20).double()
    assert paired_difference(many, 0.0 * many).clear
    assert unpaired_difference(many, 0.0 * many).clear


def test_intervals_are_rounded_outwards_in_one_notation() -> None:
    assert interval([0.58, 0.9601]) == "[58.0%, 96.1%]"
    assert interval([0.0, 1.0]) == "[0.0%, 100.0%]"
    assert interval(None) == "none"


def test_signs_are_those_of_what_is_shown() -> None:
    assert [signed(value, 2) for value in (0.004, -0.004, 12.0, -3.456)] == [
        "0.00", "0.00", "+12.00", "−3.46",
    ]  # fmt: skip


def test_one_sample_is_no_spread() -> None:
    one, many = torch.ones(1).double(), torch.zeros(5).double()
    for found in (paired_difference(one, 0.0 * one), unpaired_difference(one, many)):
        assert found.value == 1.0
        assert not found.known
        assert not found.clear
    assert paired_difference(many, many).known
