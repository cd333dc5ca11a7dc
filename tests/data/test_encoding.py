"""Encodings: what a column becomes, and what a radius then means."""

import math
import re
from typing import Any

import numpy as np
import pytest

from unitmargin.data.cells import Rows
from unitmargin.data.encoding import Column, Encoding, read_encoding
from unitmargin.foundation.cells import CHANGE

HEADER = ["colour", "age", "class"]

ENCODING = Encoding(
    label="class",
    scale="features",
    columns=[
        Column(name="age", shift=40.0, unit=8.0),
        Column(name="colour", categories=["blue", "green", "red"]),
    ],
    ignored=["id"],
)


def rows(*cells: list[str]) -> Rows:
    return Rows(HEADER, list(cells), list(range(2, 2 + len(cells))), "line")


def test_columns_are_found_by_name_and_scaled() -> None:
    found = ENCODING.encode(rows(["red", "44", "x"], ["blue", "32", "y"]))
    assert found.dtype == np.float32
    assert np.array_equal(found, np.array([[0.5, 0, 0, CHANGE], [-1, CHANGE, 0, 0]], np.float32))
    assert ENCODING.width == 4


def test_a_change_of_category_is_covered_by_a_radius_of_one() -> None:
    one, other = ENCODING.encode(rows(["red", "44", "x"], ["blue", "44", "x"])).astype(np.float64)
    length = float(np.linalg.norm(one - other))
    assert length <= 1.0
    assert length == pytest.approx(1.0, abs=1e-7)
    longer = Column(name="colour", unit=4.0, categories=["blue", "red"])
    one, other = longer.encode(rows(["red", "", ""], ["blue", "", ""])).astype(np.float64)
    assert float(np.linalg.norm(one - other)) == pytest.approx(0.25, abs=1e-7)


def test_a_radius_of_one_is_a_unit() -> None:
    column = Column(name="age", unit=5.0)
    young, old = column.encode(rows(["", "40", ""], ["", "45", ""]))[:, 0].tolist()
    assert old - young == 1.0


def test_units_are_said_in_words() -> None:
    age, height = Column(name="age", unit=5.0), Column(name="height")
    colour = Column(name="colour", categories=["a", "b"])
    for scale, columns, words in (
        ("none", [age.changed(unit=1.0)], "the units of the columns"),
        ("units", [age, height], "unit lengths of the columns (age = 5, all others 1)"),
        ("units", [age], "unit lengths of the columns (age = 5)"),
        ("units", [height], "unit lengths of the columns (all 1)"),
        (
            "features",
            [Column(name="age", unit=8.0), colour],
            "standard deviations of the training rows; a change of category has the length 1",
        ),
        (
            "units",
            [height, colour.changed(unit=4.0)],
            "unit lengths of the columns (colour = 4, all others 1); a change of category has the "
            "length 0.25 (colour)",
        ),
        (
            "units",
            [colour.changed(unit=3.0), Column(name="ward", unit=0.7, categories=["a"])],
            "unit lengths of the columns (colour = 3, ward = 0.7); a change of category has the "
            "length 0.333334 (colour), 1.42858 (ward)",
        ),
    ):
        assert Encoding(label="y", scale=scale, columns=columns).units == words


@pytest.mark.parametrize(
    ("cells", "rule"),
    [
        (["red", "", "x"], "'age' in line 2 must have a value, got an empty cell"),
        (["red", "NA", "x"], "'age' in line 2 must have a value, got 'NA'"),
        (["red", "old", "x"], "'age' in line 2 must be a number, got 'old'"),
        (["red", "inf", "x"], "'age' in line 2 must be finite, got 'inf'"),
        (["red", "1e300", "x"], "'age' in line 2 must fit into float32 when it is scaled, got"),
        (["pink", "4", "x"], "'colour' in line 2 must be a category of the training table ("),
        (["None", "4", "x"], "'colour' in line 2 must have a value, got 'None'"),
    ],
)
def test_a_wrong_cell_is_named_by_column_and_line(cells: list[str], rule: str) -> None:
    with pytest.raises(ValueError, match=re.escape(rule)):
        ENCODING.encode(rows(cells))


def test_headers_have_the_columns_of_the_training_table() -> None:
    for header in (HEADER, ["age", "colour"], ["id", "colour", "age"]):
        ENCODING.require_header(header)
    with pytest.raises(ValueError, match="got a table without 'colour'; add them"):
        ENCODING.require_header(["age"])
    with pytest.raises(ValueError, match="got also 'weight', 'height'; leave them out"):
        ENCODING.require_header([*HEADER, "weight", "height"])


def test_what_a_file_states_is_judged() -> None:
    stated = ENCODING.model_dump(exclude_none=True)
    assert read_encoding(stated, (4,)) == ENCODING
    assert read_encoding(None, (4,)) is None
    wrong: list[Any] = [
        [], "x", {}, stated | {"columns": []}, stated | {"scale": "x"}, stated | {"more": 1},
        stated | {"columns": [{"name": "a", "unit": 0.0}]},
        stated | {"columns": [{"name": "a", "shift": math.inf}]},
    ]  # fmt: skip
    for one in wrong:
        with pytest.raises(ValueError, match=r"must be|must have|must give|is no option"):
            read_encoding(one, (4,))
    with pytest.raises(ValueError, match=r"encoding must give \(1, 2, 2\) entries"):
        read_encoding(stated, (1, 2, 2))
