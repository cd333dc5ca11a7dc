"""Tables: every digit returns, and a wrong cell is named by line and column."""

import math
from pathlib import Path

import pytest
from pydantic import FiniteFloat, NonNegativeInt

from unitmargin.foundation.tables import read_table, write_table

KINDS = {"index": NonNegativeInt, "value": FiniteFloat}


def test_tables_keep_every_digit(tmp_path: Path) -> None:
    columns = {"index": [0, 1, 2, 3], "value": [1 / 3, 1e-300, math.pi * 1e10, 0.1 + 0.2]}
    write_table(tmp_path / "a.csv", columns)
    assert read_table(tmp_path / "a.csv", KINDS) == columns
    assert (tmp_path / "a.csv").read_text().startswith(f"index,value\n0,{1 / 3!r}\n")


def test_optional_columns_follow_or_are_left_out(tmp_path: Path) -> None:
    columns = {"index": [0, 1], "value": [0.5, 0.25]}
    for more in ({}, {"word": ["a", ""]}):
        write_table(tmp_path / "a.csv", columns | more)
        assert read_table(tmp_path / "a.csv", KINDS, {"word": str}) == columns | more
    with pytest.raises(ValueError, match="columns must be index, value, got index, value, word"):
        read_table(tmp_path / "a.csv", KINDS)


def test_words_may_hold_what_separates_cells(tmp_path: Path) -> None:
    columns = {"word": ["a,b", 'say "c"', ""], "number": [1, 2, 3]}
    write_table(tmp_path / "a.csv", columns)
    assert read_table(tmp_path / "a.csv", {"word": str, "number": int}) == columns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "columns must be index, value, got none"),
        ("value,index\n", "columns must be index, value, got value, index"),
        ("index,value\n1,2\n3\n", "line 3 must have 2 cells, got 1"),
        ("index,value\n1,2,3\n", "line 2 must have 2 cells, got 3"),
        ("index,value\n1,2\n\n", "line 3 must have 2 cells, got 0"),
        ("index,value\n1,2\nx,2\n", "index in line 3 must be a valid integer.* got 'x'"),
        ("index,value\n-1,2\n", "index in line 2 must be greater than or equal to 0, got '-1'"),
        ("index,value\n1,2\n9223372036854775808,2\n", "index in line 3 must fit into 64 bits"),
        (f'index,value\n"{"x" * 200_000}",2\n', "must be a table of comma-separated"),
        ("index,value\n1,nan\n", "value in line 2 must be a finite number, got 'nan'"),
    ],
)
def test_damage_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "a.csv", KINDS)
