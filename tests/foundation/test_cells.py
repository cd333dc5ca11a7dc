"""Cells: which are numbers, which are names of the same thing, and what they become."""

import math
from decimal import Decimal
from fractions import Fraction
from io import StringIO

import numpy as np
import pandas as pd

from unitmargin.foundation.cells import (
    CHANGE,
    canonical,
    category_entry,
    is_missing,
    is_number,
    scaled_to_unit,
    text_of,
)


def test_numbers_are_decimal_and_whole_ones_have_one_name() -> None:
    assert all(map(is_number, ("1", "-.5", "2e-3", "inf", "nan")))
    assert not any(map(is_number, ("1_0", "٣", "0x1", "", "1,5", "True")))
    words = ("1", "1.0", "1e0", "-0.0", "007", "1.5", "inf", "red")
    assert [*map(canonical, words)] == ["1", "1", "1", "0", "007", "1.5", "inf", "red"]
    assert all(map(is_missing, ("", "NA", "nan", "None", "null")))
    assert not is_missing("no")


def test_cells_of_data_frames_are_what_a_file_would_hold() -> None:
    for cell, text in (
        (0.1, "0.1"), (np.float32(0.1), "0.10000000149011612"), (np.float16(2), "2.0"), (7, "7"),
        (np.int64(-7), "-7"), (np.True_, "True"), (" a b ", "a b"), (None, ""),
        (float("nan"), "nan"), (np.float64("inf"), "inf"), (pd.NA, "<NA>"), (10**5000, "inf"),
        (-(10**5000), "-inf"), (Decimal("1.50"), "1.50"), (np.str_(" x"), "x"),
    ):  # fmt: skip
        assert text_of(cell) == text


def test_cells_without_a_value_are_those_of_pandas() -> None:
    cells = ["", "#N/A N/A", "-1.#IND", "1.#QNAN", "NA", "none", "x", "0", "<NA>", "null", "nil"]
    table = pd.read_csv(StringIO("a,b\n" + "".join(f'"{cell}",1\n' for cell in cells)), dtype=str)
    assert [is_missing(cell) for cell in cells] == table["a"].isna().tolist()


def test_numbers_are_scaled_in_float64_and_rounded_once() -> None:
    given = np.array([1e9 + 1.0, 1e9 + 2.0, 1e300])
    found = scaled_to_unit(given, 1e9, 1e-3)
    assert found.dtype == np.float32
    assert found.tolist() == [1000.0, 2000.0, math.inf]


def test_numbers_of_any_size_are_scaled_whatever_numpy_is_told() -> None:
    given = np.array([1e300, 1e-300, 0.0])
    with np.errstate(all="raise"):
        assert scaled_to_unit(given, 0.0, 1e-3).tolist() == [math.inf, 0.0, 0.0]
        assert category_entry(1e-45) == math.inf
        assert category_entry(1e300) == 0.0


def test_a_change_of_category_is_no_longer_than_its_length() -> None:
    """In exact arithmetic, of 1 / unit and of the float64 number that a program compares with."""
    for unit in (*map(float, range(1, 99)), 0.1, 0.7, 1.5, 1e3, 1e-3, 1e37, 1e-37):
        entry = float(category_entry(unit))
        assert math.isclose(math.hypot(entry, entry), 1 / unit, rel_tol=1e-6)
        squared = 2 * Fraction(entry) ** 2
        assert squared * Fraction(unit) ** 2 <= 1
        assert squared <= Fraction(1 / unit) ** 2
    assert category_entry(1.0) == CHANGE
