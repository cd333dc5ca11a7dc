"""New inputs from tables, one input a row: numbers by their place, or columns by their names."""

import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from unitmargin.data.cells import Rows, csv_lines, read_rows
from unitmargin.data.encoding import Encoding
from unitmargin.data.files import DataError, unreadable
from unitmargin.data.stream_items import UNKNOWN, Item, Wanted, find_label, scaled
from unitmargin.foundation.cells import canonical, is_missing, is_number
from unitmargin.foundation.numbers import shown

LABEL = "label"
"""The column that holds no numbers of an input."""

Row = tuple[int, list[str]]
"""The number of a line, and its cells."""


def read_table(path: Path, wanted: Wanted) -> Iterator[Item]:
    """Every row of a ``.csv`` file in UTF-8; empty lines are left out.

    A first line of words is a header; numbers may stand in it beside ``label`` alone. Columns are
    taken by their place, but for the one that a header calls ``label``.

    Raises:
        DataError: no text, another number of columns, a cell that is no number, a label that is no
            class of the network, or a first line of numbers and other cells.
    """
    try:
        yield from _items(csv_lines(path), wanted)
    except ValueError as fault:
        raise unreadable(path, fault, "a table of comma-separated numbers in UTF-8") from fault


def read_encoded(path: Path, wanted: Wanted, encoding: Encoding) -> Iterator[Item]:
    """Every row of a ``.csv`` or ``.parquet`` file, as those of a training table were encoded.

    Columns are found by their names, in any order; the label column may be left out, and its cells
    may be empty. Classes are known by name alone.

    Raises:
        DataError: what :func:`read_rows` refuses, columns that are missing or not known, and cells
            that cannot be encoded.
    """
    for rows in read_rows(path):
        try:
            encoding.require_header(rows.header)
            inputs = encoding.encode(rows)
            labels = _labels(rows, wanted, encoding.label)
        except ValueError as fault:
            raise DataError(f"{path}: {fault}") from fault
        for numbers, label, line in zip(inputs, labels, rows.lines, strict=True):
            yield Item(numbers, label, f"{rows.word} {line}")


def _name_of(cell: str) -> str:
    """The name of a class in a cell, none where it stands for no value."""
    return "" if is_missing(cell) else canonical(cell)


def _labels(rows: Rows, wanted: Wanted, column: str) -> list[int]:
    if column not in rows.header:
        return [UNKNOWN] * len(rows.cells)
    known = wanted.by_name()
    return [
        find_label(_name_of(cell), known, rows.where(column, row))
        for row, cell in enumerate(rows.column(column))
    ]


def _items(rows: Iterator[Row], wanted: Wanted) -> Iterator[Item]:
    first = next(rows, None)
    if first is None:
        return
    width, words = math.prod(wanted.in_shape), wanted.by_word()
    headed = not all(map(is_number, first[1]))
    header = first[1] if headed else [f"column {place + 1}" for place in range(len(first[1]))]
    place = _label_place(header) if headed else None
    _require_width(header, width, place)
    if headed:
        _require_names(first[1])
    else:
        _require_data(first[1])
    for line, cells in rows if headed else chain([first], rows):
        if len(cells) != len(header):
            raise ValueError(f"line {line} must have {len(header)} cells, got {len(cells)}")
        label = UNKNOWN
        if place is not None:
            cell = cells.pop(place)
            name = cell if cell in words else _name_of(cell)
            label = find_label(name, words, f"{LABEL} in line {line}")
        names = [name for other, name in enumerate(header) if other != place]
        numbers = _numbers(cells, names, line)
        yield Item(scaled(numbers).reshape(wanted.in_shape), label, f"line {line}")


def _label_place(header: list[str]) -> int | None:
    places = [place for place, name in enumerate(header) if name == LABEL]
    if len(places) > 1:
        raise ValueError(f"one column at most must be called {LABEL}, got {len(places)}")
    return places[0] if places else None


def _require_width(header: list[str], width: int, place: int | None) -> None:
    found = len(header) - (place is not None)
    if found != width:
        raise ValueError(
            f"it must have {width} columns of numbers, the inputs of the network in their order, "
            f"got {found}; leave out the others, but for one that a header calls {LABEL}"
        )


def _require_data(cells: list[str]) -> None:
    """Refuse what may be data or a header without names, as data frames write one."""
    if len(cells) > 1 and cells == [str(number) for number in range(len(cells))]:
        raise ValueError(
            f"its first line must be a header of words or an input, got the numbers from 0 to "
            f"{len(cells) - 1}, which may be either; name the columns, or write 0.0 for 0"
        )


def _require_names(cells: list[str]) -> None:
    """Refuse what may be an input with a cell that is missing or wrong: beside numbers, the one
    name that is known is that of the labels."""
    lost = [place for place, cell in enumerate(cells) if is_missing(cell)]
    rest = [cell for cell in cells if not is_missing(cell)]
    words = [place for place, cell in enumerate(cells) if not (is_number(cell) or cell == LABEL)]
    if (odd := lost or words) and (not rest or any(map(is_number, rest))):
        what = "a missing value or no name; fill it in" if lost else "a word; correct it"
        raise ValueError(
            f"its first line must be a header of words or an input, got {shown(cells[odd[0]])} in "
            f"column {odd[0] + 1}, {what}, leave out the line, or name the columns"
        )


def _numbers(cells: list[str], names: list[str], line: int) -> Float32[np.ndarray, " n"]:
    for name, cell in zip(names, cells, strict=True):
        if not is_number(cell):
            raise ValueError(
                f"{shown(name)} in line {line} must be a number, got {shown(cell)}; encode it as a "
                "number, or leave out its row"
            )
    return scaled(np.array([float(cell) for cell in cells]))
