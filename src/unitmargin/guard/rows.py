"""Rows of a table as they are, made inputs by what a file states of its columns."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unitmargin.foundation.cells import (
    canonical,
    category_entry,
    is_missing,
    is_number,
    scaled_to_unit,
    text_of,
)

LONGEST = 40
"""Characters of a cell in a reason."""

Row = Mapping[str, Any]


class Column(NamedTuple):
    """A column: numbers, or the places of its words."""

    name: str
    shift: float
    unit: float
    places: Mapping[str, int] | None

    @property
    def width(self) -> int:
        return 1 if self.places is None else len(self.places)

    def read(self, cell: str, entries: NDArray[np.float32]) -> str:
        """Fill in the entries of a cell; why it cannot be read, if it cannot."""
        if is_missing(cell):
            return f"no value for {_shown(self.name)}"
        return self._number(cell, entries) if self.places is None else self._word(cell, entries)

    def _number(self, cell: str, entries: NDArray[np.float32]) -> str:
        if not is_number(cell):
            return f"{_shown(self.name)} is no number: {_shown(cell)}"
        number = float(cell)
        if not math.isfinite(number):
            return f"{_shown(self.name)} is not finite: {_shown(cell)}"
        entries[:] = scaled_to_unit(np.array(number), self.shift, self.unit)
        if not np.isfinite(entries[0]):
            return f"{_shown(self.name)} does not fit into float32 when scaled: {_shown(cell)}"
        return ""

    def _word(self, cell: str, entries: NDArray[np.float32]) -> str:
        word, places = canonical(cell), self.places or {}
        if word not in places:
            return f"{_shown(self.name)} is no known category: {_shown(cell)}"
        entries[places[word]] = category_entry(self.unit)
        return ""


class RowReader:
    """Reads rows of the table that a network was trained on.

    Args:
        stated: what the file of the network states, ``encoding``.
        in_shape: of the inputs of the network.

    Raises:
        ValueError: a statement that gives no such inputs.
    """

    def __init__(self, stated: Any, in_shape: tuple[int, ...]) -> None:
        try:
            self.columns = [_column(column) for column in stated["columns"]]
            self.names = {column.name for column in self.columns}
            self.others = {str(stated["label"]), *map(str, stated.get("ignored", ()))}
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(
                f"encoding must state label and columns, got {type(error).__name__}: {error}; "
                "export the network again"
            ) from None
        self.width = sum(column.width for column in self.columns)
        if in_shape != (self.width,):
            raise ValueError(
                f"encoding must give {in_shape} entries, as many as an input has, got "
                f"{self.width}; export the network again"
            )

    def encode(self, rows: Sequence[Row]) -> tuple[NDArray[np.float32], list[str]]:
        """The inputs of rows, and why there is none, "" where there is; its numbers are NaN then.

        Raises:
            TypeError: a cell that holds several values.
            ValueError: a column that is missing or not known.
        """
        inputs = np.zeros((len(rows), self.width), np.float32)
        reasons = []
        for entries, row in zip(inputs, rows, strict=True):
            self._require_columns(row)
            reasons.append(self._fill(entries, row))
            if reasons[-1]:
                entries[:] = np.nan
        return inputs, reasons

    def _fill(self, entries: NDArray[np.float32], row: Row) -> str:
        end = 0
        reason = ""
        for column in self.columns:
            start, end = end, end + column.width
            text = _text(row[column.name], column.name)
            reason = reason or column.read(text, entries[start:end])
        return reason

    def _require_columns(self, row: Row) -> None:
        lost = [name for name in self.names if name not in row]
        extra = [name for name in row if name not in self.names and name not in self.others]
        for word, found, step in (("none called", lost, "add it"), ("also", extra, "leave it out")):
            if found:
                raise ValueError(
                    "x must have the columns of the training table, got "
                    f"{word} {', '.join(map(_shown, sorted(found)))}; {step}"
                )


def rows_of(x: object) -> tuple[list[Row], bool] | None:
    """The rows that are given as a mapping from columns to cells, as several of them, or as a data
    frame or a row of one; whether it is a single row. None for anything else, which may be arrays.

    Raises:
        ValueError: two columns of one name.
    """
    if isinstance(x, type):
        return None
    if hasattr(x, "columns") and hasattr(x, "__array__") and hasattr(x, "__getitem__"):
        columns = [list(x[name]) for name in _distinct(x.columns)]
        names = [str(name).strip() for name in x.columns]
        cells = zip(*columns, strict=True) if columns else [()] * len(np.asarray(x))
        return [dict(zip(names, row, strict=True)) for row in cells], False
    if hasattr(x, "index") and hasattr(x, "to_dict"):
        _distinct(x.index)
        return [_row(x.to_dict())], True
    if isinstance(x, Mapping):
        return [_row(x)], True
    if isinstance(x, list | tuple) and all(isinstance(row, Mapping) for row in x):
        return [_row(row) for row in x], False
    return None


def _row(given: Mapping[Any, Any]) -> Row:
    return {str(name).strip(): given[name] for name in _distinct(given)}


def _distinct(names: Any) -> list[Any]:
    listed = list(names)
    words = Counter(str(name).strip() for name in listed)
    if len(words) < len(listed):
        again = words.most_common(1)[0][0]
        raise ValueError(
            f"x must have columns of different names, got {_shown(again)} twice; rename one"
        )
    return listed


def _column(stated: Any) -> Column:
    words = stated.get("categories")
    places = None if words is None else {str(word): place for place, word in enumerate(words)}
    shift, unit = float(stated.get("shift", 0.0)), float(stated.get("unit", 1.0))
    if places is not None and len(places) != len(words):
        raise ValueError("categories that are the same")
    if not (math.isfinite(shift) and 0 < unit < math.inf):
        raise ValueError(f"shift {shift} and unit {unit}")
    return Column(str(stated["name"]), shift, unit, places)


def _text(cell: Any, name: str) -> str:
    several = isinstance(cell, Mapping | list | tuple | set | frozenset | bytes | bytearray)
    if several or (hasattr(cell, "__array__") and not isinstance(cell, np.generic)):
        raise TypeError(
            f"{_shown(name)} of x must be a number, a word or None, got {type(cell).__name__}; "
            "pass one mapping for each row"
        )
    return text_of(cell)


def _shown(text: str) -> str:
    words = repr(text)
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}..."
