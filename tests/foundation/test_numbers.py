"""Numbers from outside: the same numbers in a tensor, or one line that says what to pass."""

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as drawn

from unitmargin.foundation.numbers import (
    as_labels,
    as_tensor,
    require_amount,
    require_interval,
    require_shape,
    require_whole,
    shown,
)

TABLE = np.arange(6.0).reshape(2, 3)


class Frame:
    """What any library of data frames gives: polars, for one."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def to_numpy(self) -> Any:
        return self.array


@given(
    drawn.arrays(
        st.one_of(
            drawn.floating_dtypes(sizes=(16, 32, 64), endianness="?"),
            drawn.integer_dtypes(endianness="?"),
            drawn.unsigned_integer_dtypes(endianness="?"),
            drawn.boolean_dtypes(),
        ),
        drawn.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    )
)
def test_every_array_of_numbers_returns_unchanged(array: Any) -> None:
    turned = array[::-1] if array.ndim else array
    for given_array in (array, turned, array.T, Frame(array)):
        plain = getattr(given_array, "array", given_array)
        tensor = as_tensor("x", given_array)
        assert tuple(tensor.shape) == plain.shape
        np.testing.assert_array_equal(tensor.numpy(), plain)
        assert tensor.numpy().dtype == plain.dtype.newbyteorder("=")


def test_memory_is_shared_where_torch_can_hold_it() -> None:
    table = TABLE.copy()
    tensor = as_tensor("x", table)
    table[0, 0] = 9.0
    assert tensor[0, 0] == 9.0


@pytest.mark.parametrize(
    "array",
    [
        TABLE[::-1],
        TABLE[:, ::-2],
        TABLE.astype(">f8"),
        np.broadcast_to(TABLE[:1], (2, 3)),
        np.zeros(2, [("a", "i1"), ("b", "f8")])["b"],
    ],
)
def test_what_torch_cannot_hold_is_copied_without_a_warning(array: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_tensor("x", array).numpy().tolist() == array.tolist()


@pytest.mark.parametrize(
    ("frame", "dtype", "rows"),
    [
        (pandas.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}), torch.float64, [[1, 3], [2, 4]]),
        (pandas.DataFrame({"a": [1.0, 2.0]}, index=["p", "q"]), torch.float64, [[1], [2]]),
        (pandas.DataFrame({"a": [1, 2], "b": [3, 4]}, dtype="Float64"), torch.float64,
         [[1, 3], [2, 4]]),
        (pandas.DataFrame({"a": [1, 2], "b": [3, 4]}, dtype="float32"), torch.float32,
         [[1, 3], [2, 4]]),
        (pandas.Series([1, 2], dtype="int8"), torch.int8, [1, 2]),
        (pandas.Series([1, 2], dtype="Int64"), torch.int64, [1, 2]),
        (pandas.Series([True, False]), torch.bool, [True, False]),
    ],
)  # fmt: skip
def test_data_frames_are_their_numbers(frame: Any, dtype: torch.dtype, rows: list[Any]) -> None:
    tensor = as_tensor("x", frame)
    assert tensor.dtype == dtype
    assert tensor.tolist() == rows


def test_a_missing_value_of_a_float_column_is_nan() -> None:
    tensor = as_tensor("x", pandas.DataFrame({"a": [1.0, None], "b": [2.0, 3.0]}))
    assert tensor.isnan().tolist() == [[False, False], [True, False]]


BEYOND = 2**53 + 1
"""The smallest whole number that float64 does not hold."""


def columns(*arrays: Any, names: str = "ab") -> pandas.DataFrame:
    frame = pandas.concat([pandas.Series(array) for array in arrays], axis=1)
    frame.columns = list(names)
    return frame


class Columns:
    """A data frame of columns by name alone: polars, for one."""

    columns = ("a", "b")

    def __init__(self, *arrays: Any) -> None:
        self.arrays = dict(zip(self.columns, map(Frame, arrays), strict=True))

    def __getitem__(self, name: str) -> Frame:
        return self.arrays[name]

    def to_numpy(self) -> Any:
        return np.stack([one.array.astype(float) for one in self.arrays.values()], 1)


@pytest.mark.parametrize(
    "frame",
    [
        columns(np.array([1, BEYOND]), np.array([0.5, 1.0])),
        columns(np.array([1, -BEYOND]), np.array([0.5, 1.0])),
        columns(np.array([1, 2**63 - 1]), np.array([0.5, 1.0])),
        columns(np.array([1, BEYOND]), np.array([0, 1], "u8")),
        columns(np.array([1, BEYOND]), np.array([0.5, 1.0]), names="aa"),
        Columns(np.array([1, BEYOND]), np.array([0.5, 1.0])),
    ],
)
def test_whole_numbers_that_a_frame_would_round_are_refused(frame: Any) -> None:
    with pytest.raises(
        ValueError,
        match=r"^x must hold numbers that float64 holds .*, got -?9\d+ in column 'a'; ro",
    ):
        as_tensor("x", frame)


@pytest.mark.parametrize(
    ("whole", "others"),
    [
        (np.array([2**53, -(2**63)]), np.array([0.5, 1.0])),
        (np.array([2**24 + 1, -(2**31)], "i4"), np.array([0.5, 1.0], "f4")),
        (np.array([255, 0], "u1"), np.array([0.5, 1.0], "f2")),
        (np.array([BEYOND, 0]), np.array([1, 2], "i4")),
    ],
)
def test_whole_numbers_that_a_frame_holds_are_taken(whole: Any, others: Any) -> None:
    for frame in (columns(whole, others), columns(others, whole)[["b", "a"]]):
        tensor = as_tensor("x", frame)
        assert [int(entry) for entry in tensor[:, 0]] == whole.tolist()
        assert tensor[:, 1].tolist() == others.tolist()


REFUSED: dict[str, tuple[Any, str]] = {
    "text": (np.array(["a"]), "hold real numbers, got an array of <U1; encode them"),
    "bytes": (np.array([b"a"]), "hold real numbers, got an array of |S1; encode them"),
    "dates": (np.array(["2020"], "M8[Y]"), "hold real numbers, got an array of datetime64[Y];"),
    "complex": (np.zeros(2, complex), "hold real numbers, got an array of complex128;"),
    "records": (np.zeros(2, "f8,f8"), "hold real numbers, got an array of [('f0', '<f8'),"),
    "long": (np.zeros(2, np.longdouble), "hold numbers of 64 bits at most, got float128;"),
    "column of text": (
        pandas.DataFrame({"a": [1.0], "b": ["red"]}),
        "hold real numbers, got 'red' at position (0, 1); encode it",
    ),
    "truth values": (
        pandas.DataFrame({"a": [1.0], "b": [True]}),
        "hold numbers of one type, got an array of Python objects; convert it with astype(float)",
    ),
    "lists": (np.array([[1.0, [2]]], dtype=object), "hold real numbers, got [2] at position (0, 1"),
    "lines": (np.array(["a\nb" * 99, None]), r"hold real numbers, got 'a\nba\nba\nba"),
    "a missing value": (
        pandas.DataFrame({"a": [1.0, None], "b": [2.0, 3.0]}, dtype="Float64"),
        "hold real numbers, got <NA> at position (1, 0); encode it",
    ),
    "list": ([[1.0]], "be a tensor, a NumPy array or a data frame, got list; make an array"),
    "tuple": ((1.0,), "be a tensor, a NumPy array or a data frame, got tuple; make an array"),
    "bytes of Python": (
        b"1",
        "be a tensor, a NumPy array or a data frame, got bytes; pass numbers",
    ),
    "nothing": (None, "be a tensor, a NumPy array or a data frame, got NoneType; pass numbers"),
    "number": (np.float64(1), "be a tensor, a NumPy array or a data frame, got float64; pass"),
    "class": (pandas.DataFrame, "be a tensor, a NumPy array or a data frame, got type; pass"),
    "frame of a list": (Frame([1.0]), "be a tensor, a NumPy array or a data frame, got Frame;"),
    "sparse": (torch.eye(2).to_sparse(), "be a dense real tensor, got a sparse one; pass its to_"),
    "meta": (torch.zeros(2, device="meta"), "be a dense real tensor, got a meta one;"),
    "complex tensor": (torch.zeros(2).cfloat(), "be a dense real tensor, got a complex one;"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_holds_no_numbers_is_refused_in_one_line(kind: str) -> None:
    value, rule = REFUSED[kind]
    with pytest.raises(TypeError, match=f"^x must {re.escape(rule)}") as error:
        as_tensor("x", value)
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 200


def test_a_masked_entry_is_no_number_and_a_mask_without_one_is_nothing() -> None:
    whole = np.ma.masked_less(TABLE, -1.0)
    assert as_tensor("x", whole).tolist() == TABLE.tolist()
    with pytest.raises(ValueError, match="x must hold no masked entries, got 2; fill them"):
        as_tensor("x", np.ma.masked_less(TABLE, 2.0))


def test_a_tensor_is_itself_without_its_graph() -> None:
    leaf = torch.ones(2, requires_grad=True)
    taken = as_tensor("x", 2.0 * leaf)
    assert not taken.requires_grad
    assert as_tensor("x", leaf).data_ptr() == leaf.data_ptr()


@pytest.mark.parametrize("dtype", ["i1", "i2", ">i4", "i8", "u1", "u2", "u4", "u8"])
def test_labels_are_whole_numbers_of_any_type(dtype: str) -> None:
    labels = as_labels("labels", np.array([0, 7, 100], dtype))
    assert labels.dtype == torch.int64
    assert labels.tolist() == [0, 7, 100]


@pytest.mark.parametrize("labels", [np.array([1.0]), np.array([True]), torch.tensor([0.0]).half()])
def test_other_numbers_are_no_labels(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"^labels must be of an integer dtype, got torch\."):
        as_labels("labels", labels)


Judge = Callable[[Any], Any]

JUDGES: dict[str, tuple[Judge, list[Any], list[Any], list[Any]]] = {
    "interval": (
        lambda value: require_interval("it", value, "do so"),
        [(0, 1), [-1.5, 2], np.array([0.0, 1.0]), (-math.inf, math.inf), (np.float32(0), 1)],
        ["01", 3, None, (0,), (0, 1, 2), (None, 1), (False, True), {0: 1, 1: 2}, b"01"],
        [(1, 0), (1, 1), (0, math.nan), (10**400, 10**401), (10**5000, 0)],
    ),
    "whole number": (
        lambda value: require_whole("it", value, 1, "do so"),
        [1, 2**70, np.int8(3)],
        ["1", 1.0, None, True, np.array([1])],
        [0, -5, np.int64(0), -(10**5000)],
    ),
    "amount": (
        lambda value: require_amount("it", value, "do so"),
        [0, 0.5, np.float32(2)],
        ["1", None, False, 1j],
        [-1, math.nan, math.inf, -0.5, 10**400, 10**5000],
    ),
    "shape": (
        lambda value: require_shape("it", value),
        [(1,), [3, 2], torch.Size([1, 2]), (np.int64(3),)],
        [5, "12", None, (1.0,), (True,), b"12", {1: 1}],
        [(), (0,), (1, -1)],
    ),
}


@pytest.mark.parametrize("name", JUDGES)
def test_arguments_are_judged_by_kind_and_by_value(name: str) -> None:
    judge, right, kinds, values = JUDGES[name]
    for value in right:
        judge(value)
    for wrong, error in ((kinds, TypeError), (values, ValueError)):
        for value in wrong:
            with pytest.raises(error, match="^it must .*, got .*; "):
                judge(value)


def test_what_is_judged_is_returned_in_plain_numbers() -> None:
    assert require_interval("box", [0, np.float32(1)], "") == (0.0, 1.0)
    with pytest.raises(TypeError, match="box must be two numbers .*, got array"):
        require_interval("box", np.array(1.0), "")
    assert require_shape("in_shape", [np.int64(3), 2]) == (3, 2)
    assert [type(n) for n in require_shape("in_shape", [np.int64(3)])] == [int]


def test_labels_beyond_int64_are_refused() -> None:
    assert as_labels("labels", np.array([2**63 - 1], np.uint64)).tolist() == [2**63 - 1]
    with pytest.raises(ValueError, match=r"labels must be below 2\*\*63"):
        as_labels("labels", np.array([1, 2**63], np.uint64))


def test_a_value_is_shown_in_one_line_of_bounded_length() -> None:
    assert shown("a\nb") == r"'a\nb'"
    assert "\n" not in shown(torch.eye(30))
    assert len(shown("a" * 999)) < 50
