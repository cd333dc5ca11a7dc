"""Rows of tables: the same cells from csv and Parquet, each with where it is found."""

import datetime
import sys
from pathlib import Path

import pandas as pd
import pyarrow
import pytest
from pyarrow.parquet import write_table

from unitmargin.data.cells import CHUNK, read_rows, whole
from unitmargin.data.files import DataError
from unitmargin.data.parquet_columns import image_columns


def csv(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    rows = whole(csv(tmp_path, '\ufeffage , "a\nb"\n 1 ,2\n\n3,"x\ny"\n'))
    assert rows.header == ["age", "a\nb"]
    assert rows.cells == [["1", "2"], ["3", "x\ny"]]
    assert rows.lines == [3, 6]  # the last line of each
    assert rows.where("age", 1) == "'age' in line 6"
    assert rows.column("age") == ["1", "3"]
    assert rows.cells[1] == ["3", "x\ny"]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_csv_and_parquet_give_the_same_cells(tmp_path: Path, size: int) -> None:
    frame = pd.DataFrame(
        {
            "number": [0.1, 1e-300, float("nan")],
            "whole": [1, 2, 3],
            "word": ["a", None, "c"],
            "flag": [True, False, True],
        },
        index=[7, 8, 9],
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    text, binary = (list(read_rows(tmp_path / f"a.{kind}", size)) for kind in ("csv", "parquet"))
    assert len(text) == len(binary) == -(-3 // size)
    large = (tmp_path / "a.parquet").rename(tmp_path / "A.PARQUET")
    assert list(read_rows(large, size)) == binary
    for one, other in zip(text, binary, strict=True):
        assert one.header == other.header == ["number", "whole", "word", "flag"]
        assert one.cells == other.cells
        assert [line - 1 for line in one.lines] == other.lines
    assert binary[0].where("flag", 0) == "'flag' in row 1"
    assert [row[:3] for part in text for row in part.cells] == [
        ["0.1", "1", "a"], ["1e-300", "2", ""], ["", "3", "c"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "it must hold a header and rows, got an empty table"),
        ("a,b\n", "must hold one row at least, got none"),
        ("a,b\n1,2\n3\n", "line 3 must have 2 cells, as the header, got 1"),
        ("a,b\n1,2,3\n", "line 2 must have 2 cells, as the header, got 3"),
        ("1,2\n3,4\n", "its first line must be a header, got numbers alone (1, 2, ...)"),
        ("a,,c\n1,2,3\n", "every column must have a name, got none for column 2"),
        ("a,b,a \n1,2,3\n", "columns must have different names, got 'a' twice"),
        ("a;b\n1;2\n", "cells must be separated by commas, got ';'"),
        (b"a,b\n\xff,1\n", "must be a table in UTF-8, or a whole Parquet file, got: 'utf-8' codec"),
        ("a,b\n1," + "x" * 200_000, "got one that reaches line 2 (field larger than"),
        (
            'a,b\n1,2\n\n3,"x\n4,5\n',
            "line 4 must be a row of cells, each in quotes or without any, "
            "got one that reaches line 5 (unexpected end of data); remove the stray quote",
        ),
        ('a,b\n1,"x" y\n', "got one that reaches line 2 (',' expected after '\"')"),
    ],
)
def test_what_is_no_table_is_one_line(tmp_path: Path, text: str | bytes, rule: str) -> None:
    path = csv(tmp_path, text)
    with pytest.raises(DataError) as fault:
        whole(path)
    message = str(fault.value)
    assert message.startswith(f"{path}: ")
    assert rule in message
    assert ";" in message
    assert "\n" not in message


def test_a_damaged_parquet_file_is_one_line(tmp_path: Path) -> None:
    for content in (b"", b"PAR1", bytes(range(256))):
        with pytest.raises(DataError, match="a whole Parquet file, got: .*; save it again"):
            whole(csv(tmp_path, content, "a.parquet"))
    with pytest.raises(DataError, match=r"must be a \.csv or \.parquet file, found none"):
        whole(tmp_path / "none.csv")


def test_a_named_index_of_a_data_frame_is_a_column_as_in_csv(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1, 2], "kind": ["a", "b"], "b": [0.5, 1.5]})
    for index, header in (
        (["age"], ["age", "kind", "b"]),
        (["kind", "age"], ["kind", "age", "b"]),
    ):
        frame.set_index(index).to_parquet(tmp_path / "a.parquet")
        frame.set_index(index).to_csv(tmp_path / "a.csv")
        read, written = (whole(tmp_path / name) for name in ("a.parquet", "a.csv"))
        assert read.header == written.header == header
        assert read.cells == written.cells
    for rows in (CHUNK, CHUNK + 1):  # of which the file stores no more than the ends
        long = pd.DataFrame({"a": [1] * rows}, pd.RangeIndex(7, 7 + 3 * rows, 3, name="id"))
        long.to_parquet(tmp_path / "a.parquet")
        long.to_csv(tmp_path / "a.csv")
        read, written = (whole(tmp_path / name) for name in ("a.parquet", "a.csv"))
        assert read.header == written.header == ["id", "a"]
        assert read.cells == written.cells
    frame.index = pd.Index([7, 9])
    frame.to_parquet(tmp_path / "a.parquet")
    assert whole(tmp_path / "a.parquet").header == ["age", "kind", "b"]


@pytest.mark.parametrize("kind", [pyarrow.binary_view(), pyarrow.binary()])
def test_bytes_are_no_words_whatever_their_type(tmp_path: Path, kind: pyarrow.DataType) -> None:
    table = pyarrow.table({"a": pyarrow.array([b"x", b"y"], kind), "b": [1, 2]})
    dictionary = {"a": table["a"].cast(pyarrow.binary()).dictionary_encode(), "b": [1, 2]}
    for given in (table, pyarrow.table(dictionary)):
        write_table(given, tmp_path / "a.parquet")
        with pytest.raises(ValueError, match="'a' must hold numbers or words, got "):
            whole(tmp_path / "a.parquet").column("a")


def test_columns_of_bytes_with_one_name_are_told(tmp_path: Path) -> None:
    columns = [pyarrow.array([b"x"]), pyarrow.array([1])]
    write_table(pyarrow.Table.from_arrays(columns, ["a", "a"]), tmp_path / "a.parquet")
    assert image_columns(tmp_path / "a.parquet") == []
    with pytest.raises(DataError, match="different names, got 'a' twice; rename one"):
        whole(tmp_path / "a.parquet")


def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = csv(tmp_path, b"x", "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r"pip install unitmargin\[tables\]"):
        whole(path)


def test_columns_of_lists_records_and_bytes_are_named_where_they_are_asked_for(
    tmp_path: Path,
) -> None:
    columns = {
        "number": [1.5, 2.5],
        "list": [[1.0, 2.0], [3.0]],
        "record": [{"a": 1}, {"a": 2}],
        "bytes": [b"a", b"b"],
        "date": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)],
    }
    path = tmp_path / "a.parquet"
    write_table(pyarrow.table(columns), path)
    rows = whole(path)
    assert rows.column("number") == ["1.5", "2.5"]
    assert rows.column("date") == ["2020-01-01", "2020-01-02"]
    for name, kind in (("list", "list<"), ("record", "struct<"), ("bytes", "binary")):
        with pytest.raises(ValueError, match=f"'{name}' must hold numbers or words, got {kind}"):
            rows.column(name)
