"""The rows of a table in a file, as text: comma-separated values or Parquet."""

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from unitmargin.data.files import DataError, not_found, unreadable
from unitmargin.foundation.cells import is_number, text_of
from unitmargin.foundation.numbers import shown

PARQUET = ".parquet"

TABLES = (".csv", PARQUET)
"""How the names of tables end, in small letters or large."""

CHUNK = 4096
"""Rows read at a time."""


@dataclass(frozen=True)
class Rows:
    """Some rows of a table.

    Attributes:
        header: names of the columns.
        cells: one list a row, without blanks around.
        lines: where each row is found in the file.
        word: what is counted, "line" or "row".
        nested: columns whose cells are neither numbers nor words, with their type; what stands in
            ``cells`` for them is empty.
    """

    header: list[str]
    cells: list[list[str]]
    lines: list[int]
    word: str
    nested: dict[str, str] = field(default_factory=dict)

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each column stands."""
        return {name: place for place, name in enumerate(self.header)}

    def column(self, name: str) -> list[str]:
        """The cells of a column.

        Raises:
            ValueError: they are neither numbers nor words.
        """
        if name in self.nested:
            raise ValueError(
                f"{shown(name)} must hold numbers or words, got {self.nested[name]}; give each "
                "number a column of its own, or leave the column out by ignore"
            )
        place = self.places[name]
        return [row[place] for row in self.cells]

    def where(self, name: str, row: int) -> str:
        """The words for a cell."""
        return f"{shown(name)} in {self.word} {self.lines[row]}"


def read_rows(path: Path, size: int = CHUNK) -> Iterator[Rows]:
    """The rows of a ``.csv`` file in UTF-8 or a ``.parquet`` file, at most ``size`` at a time.

    The first line of a csv file is the header; empty lines are left out. Of a Parquet file an index
    of a data frame is a column where it has a name, as in csv. A file with a header alone gives no
    rows.

    Raises:
        DataError: no file, no table, no header, columns without a name or with the same one, a
            row of another length, or a stray quote; pandas or pyarrow is missing for a Parquet
            file.
    """
    if not path.is_file():
        raise not_found(path, "a .csv or .parquet file")
    chunks = _parquet(path, size) if path.suffix.lower() == PARQUET else _csv(path, size)
    try:
        yield from chunks
    except (ValueError, OSError) as fault:
        if isinstance(fault, DataError):
            raise
        raise unreadable(path, fault, "a table in UTF-8, or a whole Parquet file") from fault


def whole(path: Path) -> Rows:
    """All rows of a table at once, one at least; see :func:`read_rows`."""
    chunks = [*read_rows(path)]
    if not chunks or not chunks[0].cells:
        raise DataError(f"{path}: must hold one row at least, got none; name another file")
    cells = [row for chunk in chunks for row in chunk.cells]
    lines = [line for chunk in chunks for line in chunk.lines]
    return Rows(chunks[0].header, cells, lines, chunks[0].word, chunks[0].nested)


def csv_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Lines that are not empty: their numbers, and their cells without blanks around.

    Raises:
        ValueError: quotes that do not enclose a cell; the message says how far they reach.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, skipinitialspace=True, strict=True)
        first = 1
        try:
            for cells in lines:
                if cells:
                    yield lines.line_num, [cell.strip() for cell in cells]
                first = lines.line_num + 1
        except csv.Error as fault:
            raise ValueError(
                f"line {first} must be a row of cells, each in quotes or without any, got one that "
                f"reaches line {lines.line_num} ({fault}); remove the stray quote, or double those "
                "within a cell"
            ) from fault


def _csv(path: Path, size: int) -> Iterator[Rows]:
    rows = csv_lines(path)
    header = next(rows, (0, []))[1]
    _require_header(header)
    while some := [*islice(rows, size)]:
        for line, cells in some:
            if len(cells) != len(header):
                raise ValueError(
                    f"line {line} must have {len(header)} cells, as the header, got {len(cells)}; "
                    "correct it"
                )
        yield Rows(header, [cells for _, cells in some], [line for line, _ in some], "line")


def _parquet(path: Path, size: int) -> Iterator[Rows]:
    try:
        import pandas  # noqa: F401 - pyarrow makes data frames by it
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise not_installed(path, "pandas and pyarrow", error) from None
    with ParquetFile(path) as file:
        nested, done = _nested(file.schema_arrow), 0
        for batch in file.iter_batches(size):
            frame = _with_index(batch.to_pandas(), file.schema_arrow, done)
            header = [str(name).strip() for name in frame.columns]
            _require_header(header)
            missing = frame.isna()
            columns = [
                [""] * len(frame) if name in nested else _texts(frame, missing, place)
                for place, name in enumerate(header)
            ]
            cells = [[*row] for row in zip(*columns, strict=True)]
            yield Rows(header, cells, [*range(done + 1, done + len(cells) + 1)], "row", nested)
            done += len(cells)


def _with_index(frame: Any, schema: Any, first: int) -> Any:
    """A data frame from a row on whose named indices are columns in front of it. Of a range the
    file stores its ends alone, and pyarrow loses it where it gives a part of the rows."""
    for stated in reversed((schema.pandas_metadata or {}).get("index_columns", ())):
        if isinstance(stated, dict):
            name, step = stated["name"], stated["step"]
            start = stated["start"] + step * first
            values = range(start, start + step * len(frame), step)
        elif (name := stated) in frame.index.names:
            values = frame.index.get_level_values(name)
        else:
            continue  # one without a name
        if name is not None:
            frame.insert(0, name, values, allow_duplicates=True)
    return frame


def _texts(frame: Any, missing: Any, place: int) -> list[str]:
    """The cells of a column of a data frame as text, empty where there is none."""
    cells, gone = frame.iloc[:, place].tolist(), missing.iloc[:, place].tolist()
    return ["" if lost else text_of(cell) for cell, lost in zip(cells, gone, strict=True)]


def _nested(schema: Any) -> dict[str, str]:
    """Columns of lists, records and bytes, with their types."""
    from pyarrow import types

    return {
        str(column.name).strip(): str(column.type)
        for column in schema
        if types.is_nested(column.type) or is_bytes(column.type)
    }


def is_bytes(kind: Any) -> bool:
    """Whether the type of a column of Arrow is one of bytes, or of places in a list of them."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    tests = (
        types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def not_installed(path: Path, packages: str, error: ImportError) -> DataError:
    """The error for a Parquet file without what reads it."""
    return DataError(
        f"{path}: {packages} must be installed to read it, got: {error}; run "
        "`pip install unitmargin[tables]`"
    )


def _require_header(header: list[str]) -> None:
    if not header:
        raise ValueError("it must hold a header and rows, got an empty table; name another file")
    if all(map(is_number, header)):
        raise ValueError(
            f"its first line must be a header, got numbers alone ({', '.join(header[:3])}, ...); "
            "name the columns in a line above"
        )
    if len(header) == 1 and (signs := [sign for sign in ";\t|" if sign in header[0]]):
        raise ValueError(f"cells must be separated by commas, got {signs[0]!r}; save it again")
    if "" in header:
        raise ValueError(
            f"every column must have a name, got none for column {header.index('') + 1}; name it, "
            "or write the table without its index"
        )
    name, times = Counter(header).most_common(1)[0]
    if times > 1:
        raise ValueError(f"columns must have different names, got {shown(name)} twice; rename one")
