"""Rows of a table are answered as they are; what cannot be read is a rejection with its reason."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from onnx_files import write_linear

from unitmargin.data import Encoding, read_inputs
from unitmargin.foundation.cells import category_entry
from unitmargin.guard import Answer, Guard
from unitmargin.guard.rows import RowReader

STATED: dict[str, Any] = {
    "label": "kind",
    "scale": "units",
    "columns": [
        {"name": "age", "shift": 40.0, "unit": 20.0},
        {"name": "ward", "shift": 0.0, "unit": 2.0, "categories": ["1", "north", "south"]},
    ],
    "ignored": ["id"],
}

ROW = {"age": "50", "ward": "north"}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes by age: the border is at 40, and 20 years are a length of 1."""
    weight = np.zeros((4, 2))
    weight[0] = -0.5, 0.5
    path = tmp_path_factory.mktemp("rows") / "ward.onnx"
    stated = {"encoding": json.dumps(STATED)}
    return write_linear(path, weight, np.zeros(2), (4,), (-5.0, 5.0), stated=stated)


@pytest.fixture(scope="module")
def guard(file: Path) -> Guard:
    return Guard(file, 0.1)


def one(guard: Guard, row: Any) -> Answer:
    answer = guard(row)
    assert isinstance(answer, Answer)
    return answer


def test_a_radius_is_a_length_in_the_units_of_the_columns(guard: Guard) -> None:
    for age, radius in (("50", 0.5), (45, 0.25), (" 60.0 ", 1.0), (np.float32(20), 1.0)):
        answer = one(guard, {"age": age, "ward": "1.0"})
        assert (answer.outcome, answer.radius) == ("certified", radius)
        assert answer.label == int(float(age) > 40)
    assert one(guard, {"age": 41, "ward": 1}).reason == "radius 0.05 < 0.1"


@pytest.mark.parametrize("unit", [0.7, 1.5, 3.0, 6.0, 7.0, 12.0])
def test_no_threshold_of_a_change_is_passed_where_the_other_word_is_another_class(
    tmp_path: Path, unit: float
) -> None:
    """The border lies just before one of two words."""
    column = {"name": "ward", "unit": unit, "categories": ["north", "south"]}
    stated = {"label": "kind", "scale": "units", "columns": [column]}
    entry = float(category_entry(unit))
    weight = np.array([[-0.5, 0.5], [0.5, -0.5]]) * np.sqrt(0.5)
    bias = np.array([0.0, entry * np.sqrt(0.5) - 1e-12])
    path = tmp_path / "two.onnx"
    write_linear(path, weight, bias, (2,), None, stated={"encoding": json.dumps(stated)})
    guard = Guard(path, 1 / unit)
    north, south = one(guard, {"ward": "north"}), one(guard, {"ward": "south"})
    assert (north.predicted, south.predicted) == (1, 0)
    assert north.radius == pytest.approx(1 / unit, rel=1e-6)
    assert not north.certified


def test_rows_are_a_mapping_several_of_them_or_a_frame(guard: Guard) -> None:
    rows = [{"ward": ward, "age": age, "id": 3} for age, ward in ((50, "north"), (30, "south"))]
    frame = pd.DataFrame(rows, index=["x", "y"])
    answers = guard(rows)
    assert [answer.predicted for answer in answers] == [1, 0]  # type: ignore[union-attr]
    assert guard(frame.set_index("age")) == guard(frame.set_index(["id", "ward"])) == answers
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    for several in (
        tuple(rows), frame, frame.convert_dtypes(), frame[["age", "ward"]], arrow,
        *arrow.to_batches(),
    ):  # fmt: skip
        assert guard(several) == answers
    for single in (rows[0], frame.iloc[0], pd.Series(rows[0])):
        assert one(guard, single) == answers[0]  # type: ignore[index]
    assert guard([]) == guard(frame.head(0)) == []
    assert one(guard, ROW | {"kind": "whatever", " id ": None}).certified
    assert guard.counters["not_encoded"] == 0


def test_arrays_are_the_numbers_that_the_encoding_gives(guard: Guard) -> None:
    for array in (np.array([0.5, 0, 0.35, 0], np.float32), torch.tensor([0.5, 0.0, 0.35, 0.0])):
        assert one(guard, array).radius == 0.5


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"age": ""}, "no value for 'age'"),
        ({"age": None}, "no value for 'age'"),
        ({"age": float("nan")}, "no value for 'age'"),
        ({"age": pd.NA}, "no value for 'age'"),
        ({"ward": " NA "}, "no value for 'ward'"),
        ({"age": "old"}, "'age' is no number: 'old'"),
        ({"age": "1_0"}, "'age' is no number: '1_0'"),
        ({"age": True}, "'age' is no number: 'True'"),
        ({"age": np.datetime64(50, "ns")}, "'age' is no number: '1970-01-01T00:00:00.000000050'"),
        ({"age": np.timedelta64(50, "ns")}, "'age' is no number: '50 nanoseconds'"),
        ({"age": "inf"}, "'age' is not finite: 'inf'"),
        ({"age": 10**400}, "'age' is not finite: 'inf'"),
        ({"age": -1e300}, "'age' does not fit into float32 when scaled: '-1e+300'"),
        ({"ward": "west"}, "'ward' is no known category: 'west'"),
        ({"ward": 2}, "'ward' is no known category: '2'"),
        ({"ward": "a\n" * 99}, "'ward' is no known category: 'a\\na\\na\\n"),
        ({"age": "", "ward": "west"}, "no value for 'age'"),
        ({"age": 1e4}, "outside the domain [-5.0, 5.0]: 'age' = '10000.0' becomes 498.0"),
    ],
)
def test_no_value_of_a_cell_raises(guard: Guard, change: dict[str, Any], reason: str) -> None:
    before = guard.counters["not_encoded"]
    answers = guard([ROW, ROW | change, ROW])
    assert [bool(answer) for answer in answers] == [True, False, True]  # type: ignore[union-attr]
    answer = answers[1]  # type: ignore[index]
    assert answer.reason.startswith(reason)
    assert len(answer.reason) < 100
    if answer.outcome == "not_encoded":
        assert answer == Answer(None, None, 0.0, answer.reason, "not_encoded", None, None, 0.0)
        assert guard.counters["not_encoded"] == before + 1
    else:
        assert answer.outcome == "outside_domain"


@given(st.dictionaries(st.sampled_from(["age", "ward"]), st.none() | st.text() | st.floats()
                       | st.integers() | st.booleans() | st.dates() | st.decimals()))  # fmt: skip
def test_whatever_a_cell_holds_is_answered(guard: Guard, change: dict[str, Any]) -> None:
    answer = one(guard, ROW | change)
    assert answer.certified == (answer.outcome == "certified")


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ({"age": 1}, ValueError, "of the training table, got none called 'ward'; add it"),
        ({}, ValueError, "got none called 'age', 'ward'; add it"),
        (ROW | {"x": 1}, ValueError, "of the training table, got also 'x'; leave it out"),
        ([ROW, {"age": 1}], ValueError, "got none called 'ward'; add it"),
        (ROW | {"age ": 1}, ValueError, "columns of different names, got 'age' twice; rename one"),
        (ROW | {"age": [1]}, TypeError, "'age' of x must be a number, a word or None, got list"),
        (ROW | {"age": np.ones(2)}, TypeError, "'age' of x must be a number, .* got ndarray; pass"),
        (ROW | {"ward": b"north"}, TypeError, "'ward' of x must be a number, .* got bytes; pass"),
        ([ROW, 3], TypeError, "x must be rows of the table, .* got list; pass a mapping from"),
        ("age", TypeError, "x must be rows of the table, .* got str; pass a mapping from"),
        (np.array([50, 0, 1, 0]), TypeError, "rows of the table, .* got an array of int64; pass"),
        (np.array([50, "north"]), TypeError, "rows of the table, .* got an array of <U21; pass"),
        (pd.DataFrame([ROW]).itertuples(), TypeError, "rows of the table, .* got map; pass"),
        ([ROW, ROW | {None: ["x"]}], ValueError, "got more cells than columns in row 1; mend"),
        (
            pd.Series([20, 60, "north"], index=["age", "age", "ward"]),
            ValueError,
            "columns of different names, got 'age' twice; rename one",
        ),
        (pd.Series([1.0, 2.0]), ValueError, "got none called 'age', 'ward'; add it"),
        (pd.DataFrame([[1.0] * 4]), ValueError, "got none called 'age', 'ward'; add it"),
        (pd.DataFrame(index=range(3)), ValueError, "got none called 'age', 'ward'; add it"),
    ],
)
def test_a_wrong_call_is_one_line(
    guard: Guard, rows: Any, error: type[Exception], message: str
) -> None:
    before = guard.counters
    with pytest.raises(error, match=message) as told:
        guard(rows)
    assert "\n" not in str(told.value)
    assert guard.counters == before


def test_rows_for_a_network_without_a_table_are_no_arrays(tmp_path: Path) -> None:
    path = write_linear(tmp_path / "a.onnx", np.eye(2) / 2**0.5, np.zeros(2), (2,))
    with pytest.raises(TypeError, match="x must be a NumPy array or a tensor, got dict"):
        Guard(path)({"a": 1.0, "b": 2.0})
    assert len(Guard(path)(pd.DataFrame({"a": [1.0], "b": [0.0]}))) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"columns": "age"}, {"columns": []}, {"columns": [{}]}, {"columns": None}, {"label": ...},
        {"columns": [{"name": "age", "unit": 0.0}] * 4}, {"columns": [{"name": "a"}] * 3},
        {"columns": [{"name": "a", "shift": float("nan")}] * 4}, {"ignored": 3},
        {"columns": [{"name": "a", "unit": 10**400}] * 4},
        {"columns": [{"name": "a", "categories": ["x", "x", "y", "z"]}]},
    ],
)  # fmt: skip
def test_a_file_that_states_no_columns_is_refused(file: Path, change: dict[str, Any]) -> None:
    stated = {key: value for key, value in (STATED | change).items() if value is not ...}
    with pytest.raises(ValueError, match="encoding must .*; export the network again"):
        RowReader(stated, (4,))


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "age": st.floats(-1e6, 1e6) | st.integers(-99, 99),
                "ward": st.sampled_from(["1", "1.0", "north", "south"]),
            }
        ),
        min_size=1,
        max_size=9,
    )
)
def test_rows_become_the_inputs_that_certify_gives_a_file_of_them(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Mapping[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "new.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    encoding = Encoding(**STATED)
    (batch,) = read_inputs(path, (4,), ("a", "b"), 99, encoding=encoding)
    found, reasons = RowReader(STATED, (4,)).encode(rows)
    assert not any(reasons)
    assert np.array_equal(found, batch.inputs)
