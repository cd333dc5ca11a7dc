"""Tables as new inputs: with a header or without, labels by name or number."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unitmargin.data.encoding import Column, Encoding
from unitmargin.data.files import DataError
from unitmargin.data.stream import read_inputs
from unitmargin.data.stream_items import Item, Wanted
from unitmargin.data.stream_tables import read_encoded, read_table

WANTED = Wanted((3,), ("cat", "dog"))

ENCODING = Encoding(
    label="kind",
    scale="units",
    columns=[Column(name="a", shift=1.0, unit=2.0), Column(name="b", unit=4.0)],
)


def read(folder: Path, text: str | bytes, wanted: Wanted = WANTED) -> list[Item]:
    path = folder / "new.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_table(path, wanted))


@pytest.mark.parametrize("header", ["", "a,b,c\n", '"a, b",b,\n', "NA,b,c\n"])
def test_a_header_is_optional(tmp_path: Path, header: str) -> None:
    items = read(tmp_path, f"{header}0.5,-1,2e-3\n\n.25, 7,1\n")
    assert np.array_equal(
        [item.numbers for item in items], np.array([[0.5, -1, 2e-3], [0.25, 7, 1]], np.float32)
    )
    first = 2 if header else 1
    assert [item.source for item in items] == [f"line {first}", f"line {first + 2}"]
    assert [item.label for item in items] == [-1, -1]


@pytest.mark.parametrize("place", [0, 1, 3])
def test_labels_stand_in_a_column_of_their_own(tmp_path: Path, place: int) -> None:
    rows = [["a", "b", "c"], ["1", "2", "3"], ["4", "5", "6"], ["7", "8", "9"]]
    for row, word in zip(rows, ("label", "dog", "0", ""), strict=True):
        row.insert(place, word)
    items = read(tmp_path, "\n".join(map(",".join, rows)))
    assert [item.label for item in items] == [1, 0, -1]
    assert np.array_equal([item.numbers for item in items], np.arange(1, 10).reshape(3, 3))


@pytest.mark.parametrize("cell", ["", "NaN", " NA", "1.0", "1"])
def test_labels_are_read_as_data_frames_write_them(tmp_path: Path, cell: str) -> None:
    """A column of whole numbers with a gap is one of floating ones."""
    path = tmp_path / "a.csv"
    path.write_text(f"label,a,b,c,d\n{cell},1,2,3,4\n")
    (batch,) = read_inputs(path, (4,), ("0", "1"), 9)
    assert batch.labels.tolist() == [1 if "1" in cell else -1]


def test_names_of_classes_come_before_what_data_frames_write(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for classes in (("1.0", "2.0", "3.0"), ("EU", "NA", "nan")):
        path.write_text("label,a,b\n" + "".join(f"{name},1,2\n" for name in classes))
        (batch,) = read_inputs(path, (2,), classes, 9)
        assert batch.labels.tolist() == [0, 1, 2]


def test_numbers_may_name_columns_beside_the_labels(tmp_path: Path) -> None:
    """Data frames number columns without names."""
    (item,) = read(tmp_path, "label,0,1,2\ndog,1,2,3\n")
    assert (item.label, item.numbers.tolist(), item.source) == (1, [1, 2, 3], "line 2")


def test_images_are_rows_of_pixels(tmp_path: Path) -> None:
    (item,) = read(tmp_path, "1,2,3,4,5,6", Wanted((1, 2, 3), ("a", "b")))
    assert item.numbers.tolist() == [[[1, 2, 3], [4, 5, 6]]]


def test_spreadsheets_write_a_mark_and_other_line_ends(tmp_path: Path) -> None:
    assert len(read(tmp_path, b"\xef\xbb\xbfa,b,c\r\n1,2,3\r\n")) == 1
    assert len(read(tmp_path, b"\xef\xbb\xbf1,2,3")) == 1


def test_one_column_may_begin_with_zero(tmp_path: Path) -> None:
    assert len(read(tmp_path, "0\n1\n", Wanted((1,), ("a", "b")))) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n", "must have 3 columns of numbers, the inputs .* got 2; leave out"),
        ("1,2,3,4\n", "must have 3 columns of numbers, .* got 4;"),
        ("a,b,label\n1,2,0\n", "must have 3 columns of numbers, .* got 2;"),
        ("1;2;3\n", "must have 3 columns of numbers, .* got 1;"),
        ("a,b,c\n1,2\n", "line 2 must have 3 cells, got 2"),
        ("a,b,c\n1,2,3,4\n", "line 2 must have 3 cells, got 4"),
        ("a,b,c\n1,2,red\n", "'c' in line 2 must be a number, got 'red'; encode it"),
        ("1,2,3\n1,,3\n", "'column 2' in line 2 must be a number, got ''"),
        ("1,2,3\n1,1_0,3\n", "'column 2' in line 2 must be a number, got '1_0'"),
        ("1,2,3\n1,٣,3\n", "'column 2' in line 2 must be a number"),
        ("a,b,c,label\n1,2,3,bird\n", "label in line 2 must be a class of the model .* got 'bird'"),
        ("a,b,c,label\n1,2,3,2\n", "label in line 2 must be a class of the model .* got '2'"),
        ("a,label,b,c,label\n", "one column at most must be called label, got 2"),
        ("0,1,2\n1,2,3\n", "first line must be a header .* got the numbers from 0 to 2, which may"),
        (
            "1.0,NA,3.0\n1,2,3\n",
            "first line must be a header .* got 'NA' in column 2, a missing value",
        ),
        (
            ",2,3\n1,2,3\n",
            "first line must be a header .* got '' in column 1, .*; fill it in, leave",
        ),
        ("2,x,None\n1,2,3\n", "first line must be a header .* got 'None' in column 3"),
        (
            "0.1,?,0.4\n0.5,0.6,0.7\n",
            "first line must be a header .* got '\\?' in column 2, a word; correct it",
        ),
        ("1,2,x\n1,2,3\n", "first line must be a header .* got 'x' in column 3, a word"),
        ("0,1,2,kind\n1,2,3,0\n", "must have 3 columns of numbers, .* got 4;"),
        ("NA,,nan\n1,2,3\n", "first line must be a header .* got 'NA' in column 1"),
        (b"a,b,c\n\xff,2,3\n", "must be a table of comma-separated numbers in UTF-8, got: 'utf-8'"),
        (b"a,b,c\n\x00,2,3\n", "'a' in line 2 must be a number"),
        ('a,b,c\n"' + "x" * 200_000, r"line 2 must be a row .* reaches line 2 \(field larger"),
    ],
)
def test_other_tables_are_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as refused:
        read(tmp_path, text)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


def test_a_header_alone_is_no_input(tmp_path: Path) -> None:
    assert read(tmp_path, "a,b,c\n") == []


def encoded(folder: Path, text: str, name: str = "new.csv") -> list[Item]:
    path = folder / name
    path.write_text(text)
    return list(read_encoded(path, Wanted((2,), ("7", "9")), ENCODING))


def test_encoded_tables_are_read_by_name(tmp_path: Path) -> None:
    items = encoded(tmp_path, "kind,b,a\n9,4,1\n\n,8,3\n7.0,8,3\n")
    assert [item.numbers.tolist() for item in items] == [[0, 1], [1, 2], [1, 2]]
    assert [item.label for item in items] == [1, -1, 0]
    assert [item.source for item in items] == ["line 2", "line 4", "line 5"]
    assert [item.label for item in encoded(tmp_path, "a,b\n1,2\n")] == [-1]


def test_wrong_encoded_tables_are_one_line(tmp_path: Path) -> None:
    for text, rule in (
        ("a\n1\n", r"new\.csv: its columns must be those .* without 'b'; add"),
        ("a,b,c\n1,2,3\n", "got also 'c'; leave them out"),
        ("a,b,kind\n1,2,0\n", "'kind' in line 2 must be a class of the model"),
        ("a,b\n1,x\n", "'b' in line 2 must be a number, got 'x'"),
    ):
        with pytest.raises(DataError, match=rule):
            encoded(tmp_path, text)


def test_tables_are_read_for_networks_of_tables_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "new.npy", np.zeros((1, 2), np.float32))
    with pytest.raises(DataError, match=r"must be a \.csv or \.parquet file with the columns"):
        next(read_inputs(tmp_path / "new.npy", (2,), ("7", "9"), 3, encoding=ENCODING))
    pd.DataFrame({"a": [1.0], "b": [2.0]}).to_parquet(tmp_path / "new.parquet")
    with pytest.raises(DataError, match=r"must hold a column of images for a network that was not"):
        next(read_inputs(tmp_path / "new.parquet", (2,), ("7", "9"), 3))
