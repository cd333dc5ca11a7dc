"""Words: every documented example, and numbers at the edges."""

import doctest
import math

import pytest

from unitmargin.auditing.finding import at_most
from unitmargin.reporting import wording


def test_examples() -> None:
    assert doctest.testmod(wording).failed == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (0.0, "0"),
        (1.0, "1"),
        (9.96e-8, "1.0 × 10⁻⁷"),
        (1.0 - 2.0**-52, "1 − 2.2 × 10⁻¹⁶"),
        (12345678.0, "1.2 × 10⁷"),
        (-0.5, "-0.5"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "not a number"),
        (5e-324, "4.9 × 10⁻³²⁴"),
    ],
)
def test_scientific(value: float | None, text: str) -> None:
    assert wording.scientific(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12, "0.12"), (0.1200001, "0.13"), (9.91, "10"), (5e-324, "4.9 × 10⁻³²⁴"),
        (1.79e308, "∞"), (math.inf, "∞"), (3.14e-12, "3.2 × 10⁻¹²"),
    ],
)  # fmt: skip
def test_a_bound_is_rounded_up(value: float, text: str) -> None:
    assert wording.bound(value) == text


@pytest.mark.parametrize("value", [1.08262, 0.0016, 0.9999, 12.3456, 0.57])
def test_a_radius_is_rounded_down(value: float) -> None:
    text = wording.radius(value)
    assert value - 0.001 < float(text) <= value
    assert len(text.partition(".")[2]) == 3
    assert float(wording.radius(1e300)) == 1e300


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.00099999, "9.9 × 10⁻⁴"), (1.99e-310, "1.9 × 10⁻³¹⁰"), (5e-8, "5.0 × 10⁻⁸")],
)
def test_a_small_radius_is_rounded_down(value: float, text: str) -> None:
    assert wording.radius(value) == text


def test_a_promise_shows_the_smallest_ratio_of_all_searches() -> None:
    def shown(*checks: tuple[str, float | None]) -> str:
        rows = [{"name": name, "value": value} for name, value in checks]
        (_, _, _, value), *_ = wording.promises({"checks": rows, "signed_distance": True})
        return value

    closed_form, solvers = wording.CLOSED_FORM, wording.SOLVERS
    assert shown((closed_form, 1.01), (solvers, 0.7)) == "0.7"
    assert shown((closed_form, 1.01), (solvers, None)) == "1.01"
    assert shown((solvers, 1.2)) == "1.2"
    assert shown() == "none"


def test_an_unknown_check_keeps_its_name() -> None:
    check = at_most("new_promise", 0.5, 1.0).model_dump()
    (row,) = wording.check_rows({"checks": [check]})
    assert (row["title"], row["value"], row["bound"]) == ("new promise", "0.5", "1")
