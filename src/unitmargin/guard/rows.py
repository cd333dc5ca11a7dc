"""Rows of a table as they are, made inputs by what a file states of its columns."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
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

    def read(self, cell: str) -> tuple[float, str]:
        """The number of a cell, or the place of its word; why it cannot be read, if it cannot."""
        if is_missing(cell):
            return 0.0, f"no value for {_shown(self.name)}"
        if self.places is not None:
            place = self.places.get(canonical(cell), -1)
            return float(place), self.says("is no known category", cell) if place < 0 else ""
        if not is_number(cell):
            return 0.0, self.says("is no number", cell)
        number = float(cell)
        return (number, "") if math.isfinite(number) else (0.0, self.says("is not finite", cell))

    def says(self, what: str, cell: str) -> str:
        return f"{_shown(self.name)} {what}: {_shown(cell)}"


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
        ends = accumulate((column.width for column in self.columns), initial=0)
        self.starts = list(ends)[:-1]
        scales = [(column.shift, column.unit) for column in self.columns if column.places is None]
        self.shifts, self.units = np.array(scales, np.float64).reshape(-1, 2).T
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
        known: Row | None = None
        values, reasons = np.zeros((len(rows), len(self.columns))), []
        for place, row in enumerate(rows):
            if known is None or row.keys() != known.keys():
                self._require_columns(row)
            known = row
            values[place], reason = self._values(row)
            reasons.append(reason)
        inputs = self._entries(values)
        for place in np.flatnonzero(np.logical_not(np.isfinite(inputs)).any(axis=1)).tolist():
            reasons[place] = reasons[place] or self._too_large(rows[place], inputs[place])
        inputs[[bool(reason) for reason in reasons]] = np.nan
        return inputs, reasons

    def outside(self, row: Row, entries: NDArray[np.float32], domain: tuple[float, float]) -> str:
        """Which cell of a row has an entry outside of the domain, the first one, in a sentence."""
        low, high = map(np.float32, domain)
        place = int(((entries < low) | (entries > high)).argmax())
        column = self.columns[bisect_right(self.starts, place) - 1]
        cell = _shown(_text(row[column.name], column.name))
        becomes = f"{_shown(column.name)} = {cell} becomes {entries[place]!s}"
        return f"outside the domain {list(domain)}: {becomes}"

    def _values(self, row: Row) -> tuple[list[float], str]:
        """The number or place of each cell, and why the first that cannot be read cannot."""
        values, first = [], ""
        for column in self.columns:
            value, reason = column.read(_text(row[column.name], column.name))
            values.append(value)
            first = first or reason
        return values, first

    def _entries(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """The inputs of numbers and places, ``(rows, columns)``."""
        inputs = np.zeros((len(values), self.width), np.float32)
        of_numbers = [place for place, column in enumerate(self.columns) if column.places is None]
        starts = [self.starts[place] for place in of_numbers]
        inputs[:, starts] = scaled_to_unit(values[:, of_numbers], self.shifts, self.units)
        for place, column in enumerate(self.columns):
            if column.places is not None:
                words = self.starts[place] + np.maximum(values[:, place], 0.0).astype(np.int64)
                inputs[np.arange(len(values)), words] = category_entry(column.unit)
        return inputs

    def _too_large(self, row: Row, entries: NDArray[np.float32]) -> str:
        finite = np.isfinite(entries[self.starts])
        column = self.columns[int(finite.argmin())]
        cell = _text(row[column.name], column.name)
        return column.says("does not fit into float32 when scaled", cell)

    def _require_columns(self, row: Row) -> None:
        lost = [name for name in self.names if name not in row]
        extra = [name for name in row if name not in self.names and name not in self.others]
        for word, found, step in (("none called", lost, "add it"), ("also", extra, "leave it out")):
            if found:
                raise ValueError(
                    "x must have the columns of the training table, got "
                    f"{word} {', '.join(map(_shown, sorted(found)))}; {step}"
                )


def rows_of(x: object, wanted: Collection[str]) -> tuple[list[Row], bool] | None:
    """The rows that are given as a mapping from columns to cells, as several of them, as a data
    frame or a row of one, or as a table of Arrow; whether it is a single row. None for anything
    else, which may be arrays. An index of a frame is a column where it has a name that is wanted.

    Raises:
        ValueError: two columns of one name, or a row of more cells than columns.
    """
    if isinstance(x, type):
        return None
    if hasattr(x, "column_names") and hasattr(x, "to_pylist"):
        _distinct(x.column_names)
        return [_row(row) for row in x.to_pylist()], False
    if hasattr(x, "columns") and hasattr(x, "__array__") and hasattr(x, "__getitem__"):
        columns = [list(x[name]) for name in _distinct(x.columns)]
        names = [str(name).strip() for name in x.columns]
        index: Any = getattr(x, "index", None)
        for level in getattr(index, "names", ()):  # a column in a file
            if level in wanted and level not in names:
                names.append(level)
                columns.append(list(index.get_level_values(level)))
        cells = zip(*columns, strict=True) if columns else [()] * len(np.asarray(x))
        return [dict(zip(names, row, strict=True)) for row in cells], False
    if hasattr(x, "index") and hasattr(x, "to_dict"):
        _distinct(x.index)
        return [_row(x.to_dict())], True
    if isinstance(x, Mapping):
        return [_row(x)], True
    if isinstance(x, list | tuple) and all(isinstance(row, Mapping) for row in x):
        return [_row(row, f" in row {place}") for place, row in enumerate(x)], False
    return None


def require_entries(x: object) -> None:
    """Raise a TypeError for what is not the numbers that rows are encoded to, but may be theirs.

    Those of an array whose type is no floating one, and of a list, are mostly of the table itself.
    What gives itself as no array for another reason is left to who reads it.
    """
    kind = type(x).__name__
    if hasattr(x, "__array__") and not isinstance(x, type):
        try:
            dtype = np.asarray(x).dtype
        except (TypeError, ValueError, RuntimeError):
            return
        if dtype.kind not in "biuOSTU":
            return
        kind = f"an array of {dtype}"
    raise TypeError(
        "x must be rows of the table, or an array of the floating point numbers that they are "
        f"encoded to, got {kind}; pass a mapping from columns to cells for each row"
    )


def _row(given: Mapping[Any, Any], where: str = "") -> Row:
    if None in given:  # where csv.DictReader keeps cells beyond its columns
        raise ValueError(
            f"x must have a column for each cell, got more cells than columns{where}; mend the row"
        )
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
