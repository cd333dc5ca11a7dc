"""Comma-separated tables with typed columns, whose floats keep all their digits."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from unitmargin.foundation.files import write_text
from unitmargin.foundation.options import broken_rule

WIDEST = 2**63 - 1
"""Largest whole number of a table: columns become tensors."""


def write_table(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of one length as a comma-separated table; floats keep all their digits."""
    rows = (columns, *zip(*columns.values(), strict=True))
    write_text(path, "".join(map(_line, rows)))


def _line(cells: Iterable[Any]) -> str:
    """One row; a cell that holds any kind of line end is quoted, as the writer does by its own."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def read_table(
    path: Path, kinds: Mapping[str, Any], optional: Mapping[str, Any] | None = None
) -> dict[str, list[Any]]:
    """The columns of a table written by :func:`write_table`.

    Args:
        path: file to read.
        kinds: names of all columns in their order, each with the type of its cells, such as
            ``int`` or pydantic's ``NonNegativeInt``.
        optional: columns that may follow, all or none.

    Raises:
        ValueError: no text, other columns, or a cell that is not of its kind; the message names
            line and column.
    """
    with path.open(encoding="utf-8", newline="") as file:
        try:
            header, *lines = [*csv.reader(file)] or [[]]
        except csv.Error as error:
            raise ValueError(f"it must be a table of comma-separated cells, got {error}") from None
    if header == [*kinds, *(optional or {})]:
        kinds = {**kinds, **(optional or {})}
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
            _require_width(name, columns[name])
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            number = int(first["loc"][0]) + 2
            raise ValueError(f"{name} in line {number} {broken_rule(first)}") from None
    return columns


def _require_width(name: str, cells: list[Any]) -> None:
    """Raise unless all whole numbers fit where tensors keep them."""
    for number, cell in enumerate(cells, start=2):
        if isinstance(cell, int) and abs(cell) > WIDEST:
            raise ValueError(f"{name} in line {number} must fit into 64 bits, got {cell}")
