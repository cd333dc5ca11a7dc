"""Images in Parquet files, row by row: what is encoded, and its label."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unitmargin.data.files import DataError
from unitmargin.data.layout import Layout, Place
from unitmargin.data.parquet_columns import ImageColumns, find_columns, image_columns, opened
from unitmargin.data.shards import Shard, find_shards, split_shards
from unitmargin.foundation.cells import class_order
from unitmargin.foundation.numbers import shown

BATCH = 64
"""Rows read at a time: of photos of a few megabytes."""

WITHHELD = -1
"""The number of a label that the hub does not give away."""


def image_shards(path: Path) -> list[Shard]:
    """The Parquet files of images that a path names; none where the first one holds no images.

    Raises:
        DataError: what :func:`find_shards` refuses, a damaged first file, or pyarrow is missing.
    """
    shards = find_shards(path)
    return shards if shards and image_columns(shards[0].file) else []


def read_shards(path: Path, label: str | None = None) -> Layout:
    """Which images are in the Parquet files of a path, by the names of their rows, in their order.

    Labels alone are read. Classes are those that occur: in the order of their numbers where the
    schema names them, else sorted.

    Raises:
        DataError: what :func:`find_shards` and :func:`split_shards` refuse, a file without images,
            labels or rows, a row without a label, class names that differ from file to file, or a
            test class without training images.
    """
    train, test = split_shards(path, find_shards(path))
    places: dict[str, Place] = {}
    stated: list[ImageColumns] = []
    for shards in filter(None, (train, test)):
        before = len(places)
        for shard in shards:
            with opened(shard.file) as stream:
                stated.append(find_columns(stream.schema_arrow, shard.file, label))
                _require_alike(shard.file, stated[-1], stated[0], stream.schema_arrow.names)
                words = enumerate(_words(stream, path, shard, stated[-1]))
                rows = ((shard.row(number), word) for number, word in words)
                places |= {name: Place(shards is test, word, name) for name, word in rows}
        if len(places) == before:
            names = ", ".join(shard.name or shard.file.name for shard in shards)
            raise DataError(f"{path}: must hold a row in {names}, got none; fetch the files again")
    return Layout(places, _classes(path, places, stated[0].names), split=bool(test))


def read_image_rows(
    path: Path, shard: Shard, label: str | None = None
) -> Iterator[tuple[bytes, str | None]]:
    """The encoded image and the label of each row of a file, a few rows at a time.

    Labels are None where there is none, and everywhere if no column is told to be theirs; so it is
    where the one called ``label`` is missing.

    Raises:
        DataError: no column of images, a row without one, or a damaged file.
    """
    with opened(shard.file) as stream:
        schema = stream.schema_arrow
        known = label if label in schema.names else None
        columns = find_columns(schema, shard.file, known)
        if known != label:
            columns = columns._replace(label=None)
        wanted = [name for name in columns[:2] if name is not None]
        number = 0
        for batch in stream.iter_batches(BATCH, columns=wanted):
            for row in batch.to_pylist():
                where = f"{path}: {shard.row(number)}"
                word = _word(row.get(columns.label), columns, where)
                yield _content(row[columns.image], where), word
                number += 1


def _require_alike(
    file: Path, columns: ImageColumns, first: ImageColumns, names: list[str]
) -> None:
    if columns.label is None:
        raise DataError(
            f"{file}: label must name the column of the classes, which is not told by its name, "
            f'got the columns {", ".join(map(shown, names))}; write label = "NAME", for init '
            "--label NAME"
        )
    if columns.names != first.names:
        raise DataError(
            f"{file}: must state the class names of the files before it, got "
            f"{shown(columns.names)} after {shown(first.names)}; write all files alike"
        )


def _classes(path: Path, places: dict[str, Place], names: tuple[str, ...]) -> tuple[str, ...]:
    train, test = ({p.label for p in places.values() if p.test is side} for side in (False, True))
    for label in sorted(test - train):
        raise DataError(
            f"{path}: every class of the test rows must have training rows, got none of "
            f"{shown(label)}; add some, or leave it out"
        )
    if names:
        return tuple(name for name in names if name in train)
    return tuple(class_order(train))


def _words(stream: Any, path: Path, shard: Shard, columns: ImageColumns) -> Iterator[str]:
    """The labels of a file, one for each row."""
    number = 0
    for batch in stream.iter_batches(columns=[columns.label]):
        for cell in batch.column(0).to_pylist():
            where = f"{path}: {shard.row(number)}"
            word = _word(cell, columns, where)
            if word is None:
                raise DataError(
                    f"{where} must have a label in {shown(columns.label)}, got none; fill it in, "
                    "or leave out its row or file"
                )
            yield word
            number += 1


def _word(cell: Any, columns: ImageColumns, where: str) -> str | None:
    """A label as the name of a class; None where there is none."""
    if cell is None or cell == "" or cell != cell:
        return None
    if isinstance(cell, str | bool):
        word = str(cell).strip()
        if columns.names and word and word not in columns.names:
            raise DataError(
                f"{where}: {shown(columns.label)} must be one of the class names that the file "
                f"states ({', '.join(map(shown, columns.names))}), got {shown(word)}; correct it, "
                "or write the file without its stated names"
            )
        return word or None
    whole = int(cell) if float(cell).is_integer() else None
    if whole == WITHHELD and columns.names:
        return None
    if whole is None or (columns.names and not 0 <= whole < len(columns.names)):
        rule = f"from 0 to {len(columns.names) - 1}" if columns.names else "a whole number"
        raise DataError(
            f"{where}: {shown(columns.label)} must be {rule}, got {cell}; correct it, or name "
            "another label column"
        )
    return columns.names[whole] if columns.names else str(whole)


def _content(cell: Any, where: str) -> bytes:
    content = cell.get("bytes") if isinstance(cell, dict) else cell
    if content is None:
        place = cell.get("path") if isinstance(cell, dict) else None
        got = "none" if place is None else f"the path {shown(place)} alone"
        raise DataError(
            f"{where} must hold the bytes of an image, got {got}; store them, or leave out the row"
        )
    return bytes(content)
