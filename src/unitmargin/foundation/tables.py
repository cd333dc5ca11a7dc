"""Comma-separated tables with typed columns, whose floats keep all their digits."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from unitmargin.foundation.files import write_text
from unitmargin.foundation.options import broken_rule


def write_table(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of one length as a comma-separated table; floats keep all their digits."""
    rows = (columns, *zip(*columns.values(), strict=True))
    write_text(path, "".join(map(_line, rows)))


def _line(cells: Iterable[Any]) -> str:
    """One row; a cell that holds any kind of line end is quoted, as the writer does by its own."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def read_table(path: Path, kinds: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The columns of a table written by :func:`write_table`.

    Args:
        path: file to read.
        kinds: names of all columns in their order, each with the type of its cells, such as
            ``int`` or pydantic's ``NonNegativeInt``.

    Raises:
        ValueError: no text, other columns, or a cell that is not of its kind; the message names
            line and column.
    """
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = [*csv.reader(file)] or [[]]
    if header != list(kinds):
        raise ValueError(f"columns must be {', '.join(kinds)}, got {', '.join(header) or 'none'}")
    for number, cells in enumerate(lines, start=2):
        if len(cells) != len(kinds):
            raise ValueError(f"line {number} must have {len(kinds)} cells, got {len(cells)}")
    columns: dict[str, list[Any]] = {}
    for place, (name, kind) in enumerate(kinds.items()):
        try:
            cells = [line[place] for line in lines]
            columns[name] = TypeAdapter(list[kind]).validate_python(cells)  # type: ignore[valid-type]
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            number = int(first["loc"][0]) + 2
            raise ValueError(f"{name} in line {number} {broken_rule(first)}") from None
    return columns
