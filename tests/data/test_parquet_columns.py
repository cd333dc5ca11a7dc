"""Columns of images and labels, told by types, by what a schema states, and by names."""

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from data.hub import hub_file
from data.tiny import png
from pyarrow.parquet import write_table

from unitmargin.data.files import DataError
from unitmargin.data.parquet_columns import find_columns, image_columns, opened

IMAGE = png()


def found(file: Path, label: str | None = None) -> Any:
    with opened(file) as stream:
        return find_columns(stream.schema_arrow, file, label)


def test_a_struct_of_bytes_and_path_is_an_image_and_its_classes_are_stated(tmp_path: Path) -> None:
    file = hub_file(tmp_path / "a.parquet", [IMAGE], [1], ["cat", "dog"], image="img", label="kind")
    assert found(file) == ("img", "kind", ("cat", "dog"))
    assert image_columns(file) == ["img"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(len(IMAGE))])
def test_plain_bytes_are_an_image_by_their_name_or_their_content(tmp_path: Path, kind: Any) -> None:
    file = hub_file(tmp_path / "a.parquet", [IMAGE], [1], image="picture", kind=kind)
    assert (found(file), image_columns(file)) == (("picture", "label", ()), ["picture"])
    file = hub_file(tmp_path / "b.parquet", [b"x"], [1], image="hash", kind=pa.binary())
    assert image_columns(file) == []
    file = hub_file(tmp_path / "c.parquet", [b"x"], [1], kind=pa.binary())
    assert image_columns(file) == ["image"]


def test_of_several_columns_the_one_that_is_stated_or_called_so_is_taken(tmp_path: Path) -> None:
    others = {"mask": [IMAGE], "target_size": [3]}
    file = hub_file(tmp_path / "a.parquet", [IMAGE], ["x"], label="y", kind=pa.binary(), **others)
    assert found(file) == ("image", "y", ())
    assert found(file, "target_size") == ("image", "target_size", ())
    file = hub_file(tmp_path / "b.parquet", [IMAGE], [0], ["x"], image="scan", **others)
    assert found(file) == ("scan", "label", ("x",))
    file = hub_file(tmp_path / "c.parquet", [IMAGE], [0], image="scan", **others)
    with pytest.raises(DataError, match=r'got several \(scan, mask\); call one "image"'):
        found(file)


@pytest.mark.parametrize("content", [b"{", b"[]", b"7", b'{"info": {"features": []}}', b"\xff"])
def test_other_statements_of_a_schema_say_nothing(tmp_path: Path, content: bytes) -> None:
    table = pa.table({"image": pa.array([IMAGE]), "label": [1]})
    write_table(table.replace_schema_metadata({b"huggingface": content}), tmp_path / "a.parquet")
    assert found(tmp_path / "a.parquet") == ("image", "label", ())


def test_what_is_no_image_or_no_label_is_named(tmp_path: Path) -> None:
    lists = pa.list_(pa.struct([("bytes", pa.binary())]))
    for image in (pa.array([[{"bytes": IMAGE}]], lists), pa.array([{"data": IMAGE}]), ["a.png"]):
        write_table(pa.table({"image": image, "label": [1]}), tmp_path / "a.parquet")
        assert image_columns(tmp_path / "a.parquet") == []
        with pytest.raises(DataError, match=r"must have one column of images, .* 'image', 'label'"):
            found(tmp_path / "a.parquet")
    file = hub_file(tmp_path / "b.parquet", [IMAGE], [[1, 2]])
    with pytest.raises(DataError, match=r"'label' must hold whole numbers or words, .* list<"):
        found(file)
    with pytest.raises(DataError, match="label must be one of 'image', 'label', got 'lable'; did"):
        found(file, "lable")


def test_a_damaged_file_and_a_missing_reader_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = hub_file(tmp_path / "a.parquet", [IMAGE], [1])
    whole = file.read_bytes()
    for content in (b"", b"x", whole[:-9]):
        file.write_bytes(content)
        with pytest.raises(
            DataError, match=r"a.parquet: must be a whole Parquet file, got"
        ) as told:
            image_columns(file)
        assert "\n" not in str(told.value)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r"pyarrow must be installed .* unitmargin\[tables\]"):
        image_columns(file)
