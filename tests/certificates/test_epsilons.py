"""The radii at which a run is told: fixed for pixels, else round, rising and within the radii."""

import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from unitmargin.certificates.accuracy import EPSILONS, HEADLINE_EPSILON
from unitmargin.certificates.epsilons import FIELD, choose_epsilons, round_radius, round_up

POSITIVE = st.floats(0, exclude_min=True, allow_infinity=False)


def radii(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("radius", [radii(), radii(0.0), radii(7.0, 8.0)])
def test_pixels_have_those_of_the_field_whatever_the_radii(radius: torch.Tensor) -> None:
    assert choose_epsilons(radius, pixels=True) == FIELD
    assert FIELD.table == EPSILONS
    assert FIELD.headline == HEADLINE_EPSILON


def test_other_units_have_round_quantiles() -> None:
    found = choose_epsilons(torch.linspace(0.0, 40.0, 401).double(), pixels=False)
    assert found.table == (0.0, 4.0, 10.0, 20.0, 30.0, 40.0)
    assert (found.headline, found.second) == (10.0, 20.0)


def test_radii_of_0_do_not_count() -> None:
    claims = torch.linspace(0.1, 4.0, 40).double()
    with_zeros = torch.cat([torch.zeros(500).double(), claims])
    assert choose_epsilons(with_zeros, pixels=False) == choose_epsilons(claims, pixels=False)


def test_radii_that_are_close_have_more_digits() -> None:
    found = choose_epsilons(torch.linspace(1.0, 1.1, 101).double(), pixels=False)
    assert found.table == (0.0, 1.01, 1.02, 1.05, 1.08, 1.09)


def test_few_radii_stay_round() -> None:
    assert choose_epsilons(radii(0.26, 0.31, 0.31), pixels=False).table == (0.0, 0.25, 0.3)


@pytest.mark.parametrize("radius", [radii(), radii(0.0, 0.0)])
def test_without_a_radius_there_is_a_table_still(radius: torch.Tensor) -> None:
    assert choose_epsilons(radius, pixels=False) == ((0.0, 1.0), 1.0, 1.0)


@pytest.mark.parametrize(
    ("radius", "told"),
    [
        (radii(*[0.097] * 50), 0.08),
        (radii(*[0.14999] * 3), 0.1),
        (radii(1.0), 0.8),
        (radii(0.2, 0.2, 0.3), 0.2),
    ],
)
def test_what_is_told_first_lies_below_some_radius(radius: torch.Tensor, told: float) -> None:
    found = choose_epsilons(radius, pixels=False)
    assert (found.headline, found.second) == (told, told)
    assert float(radius.max()) > told


@given(st.lists(POSITIVE, min_size=1, max_size=40))
@example([1.0101, 1.0111, 1.0151, 1.0153, 1.0155])
@example([5.01, 5.11, 5.147, 5.148, 5.149])
def test_a_table_rises_from_0_and_holds_what_is_told_first(values: list[float]) -> None:
    found = choose_epsilons(radii(*values), pixels=False)
    assert found.table[0] == 0.0
    assert 2 <= len(found.table) <= 6
    assert all(a < b for a, b in zip(found.table, found.table[1:], strict=False))
    assert {found.headline, found.second} <= set(found.positive)
    assert found.headline <= found.second
    assert found.second < max(values) or max(values) < 1e-300
    assert all(map(math.isfinite, found.table))


@given(POSITIVE)
def test_round_numbers_are_near_and_thresholds_no_less(value: float) -> None:
    assert round_up(value) >= value
    if 1e-300 < value < 1e300:
        assert round_up(value) <= 1.0101 * value
        assert abs(round_radius(value) - value) <= 0.26 * value


def test_a_threshold_of_three_digits_is_kept() -> None:
    assert [round_up(value) for value in (0.1, 0.267, 5.0)] == [0.1, 0.267, 5.0]
