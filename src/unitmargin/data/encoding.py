"""How the columns of a table become the numbers of an input, and what a radius then means."""

import math
from decimal import ROUND_CEILING, Context
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float32, Float64
from pydantic import Field, PositiveFloat

from unitmargin.data.cells import Rows
from unitmargin.foundation.cells import (
    canonical,
    category_entry,
    is_missing,
    is_number,
    scaled_to_unit,
)
from unitmargin.foundation.numbers import shown
from unitmargin.foundation.options import Options, among

SCALES = ("none", "features", "units")
"""Columns as they are, in standard deviations of the training rows, or in units that were named."""

ROUNDED = 1e-4
"""Share of the range of a column that rounding may move its numbers by."""

ENCODING = "encoding"
"""The fact under which a model file and an exported file state it."""

INPUT_UNITS = "the units of the inputs"


class Column(Options):
    """A column: ``(x - shift) / unit`` of numbers, and of words one entry for each category.

    Attributes:
        name: in the header of the table.
        shift, unit: what is subtracted from a number, and what it is then divided by.
        categories: all words of a column of words; none for numbers.
    """

    name: str
    shift: float = 0.0
    unit: PositiveFloat = 1.0
    categories: Annotated[list[str], Field(min_length=1)] | None = None

    @property
    def width(self) -> int:
        """How many entries of an input it becomes."""
        return 1 if self.categories is None else len(self.categories)

    def encode(self, rows: Rows) -> Float32[np.ndarray, "n width"]:
        """Its entries of every row.

        Raises:
            ValueError: a cell that is missing, no number, not finite, or no known category.
        """
        return self._words(rows) if self.categories else self.scaled(numbers(rows, self.name), rows)

    def scaled(self, given: Float64[np.ndarray, " n"], rows: Rows) -> Float32[np.ndarray, "n 1"]:
        """Numbers in its unit, computed in float64 and rounded."""
        entries = scaled_to_unit(given, self.shift, self.unit)
        if not (finite := np.isfinite(entries)).all():
            place = int(finite.argmin())
            raise ValueError(
                f"{rows.where(self.name, place)} must fit into float32 when it is scaled, got "
                f"{given[place]:g}; correct it, or choose a larger unit"
            )
        return entries[:, None]

    def require_digits(self, trained: Float64[np.ndarray, " n"]) -> None:
        """Raise a ValueError where rounding to float32 moves training numbers by more than
        ``ROUNDED`` of their range: a radius is one of rounded numbers."""
        entries = scaled_to_unit(trained, self.shift, self.unit).astype(np.float64)
        with np.errstate(all="ignore"):
            moved = float(np.abs(entries * self.unit - (trained - self.shift)).max())
            width = float(trained.max() - trained.min())
        if width > 0.0 and ROUNDED * width < moved < math.inf:
            raise ValueError(
                f"{shown(self.name)} must keep its digits in float32, got numbers that differ by "
                f'{width:g} and are rounded by {moved:g}; write scale = "features", or subtract '
                "what they have in common"
            )

    def _words(self, rows: Rows) -> Float32[np.ndarray, "n width"]:
        known = {word: place for place, word in enumerate(self.categories or ())}
        entries = np.zeros((len(rows.cells), self.width), np.float32)
        for row, word in enumerate(words(rows, self.name)):
            if word not in known:
                raise ValueError(
                    f"{rows.where(self.name, row)} must be a category of the training table "
                    f"({', '.join(map(shown, known))}), got {shown(word)}; correct it, or leave "
                    "out its row"
                )
            entries[row, known[word]] = category_entry(self.unit)
        return entries


class Encoding(Options):
    """What a network that was trained on a table does to the columns of another one.

    Attributes:
        label: the column of the classes.
        scale: a name in ``SCALES``.
        columns: in the order of the entries of an input.
        ignored: columns that a table may have and that are left out.

    Example:
        >>> Encoding(label="class", scale="features", columns=[Column(name="age")]).units
        'standard deviations of the training rows'
    """

    label: str
    scale: Annotated[str, among("scale", SCALES)] = "none"
    columns: Annotated[list[Column], Field(min_length=1)]
    ignored: list[str] = Field(default_factory=list)

    @property
    def width(self) -> int:
        """Entries of an input."""
        return sum(column.width for column in self.columns)

    @property
    def units(self) -> str:
        """What radii are measured in, in words."""
        own = {column.name: column.unit for column in self.columns if column.unit != 1.0}
        named = ", ".join(f"{name} = {unit:.15g}" for name, unit in own.items())
        words = {
            "none": "the units of the columns",
            "features": "standard deviations of the training rows",
            "units": f"unit lengths of the columns ({named or 'all 1'}"
            f"{', all others 1' if 0 < len(own) < len(self.columns) else ''})",
        }[self.scale]
        categorical = [column for column in self.columns if column.categories]
        if not categorical:
            return words
        return f"{words}; a change of category has the length {_changes(categorical)}"

    def column_of(self, entry: int) -> str:
        """The name of the column that an entry of an input is of."""
        names = [column.name for column in self.columns for _ in range(column.width)]
        return names[entry]

    def encode(self, rows: Rows) -> Float32[np.ndarray, "n width"]:
        """The inputs of rows, whose columns are found by name.

        Raises:
            ValueError: a cell that cannot be read; the message names column and line.
        """
        return np.concatenate([column.encode(rows) for column in self.columns], axis=1)

    def require_header(self, header: list[str]) -> None:
        """Raise unless a table has all columns and no others; the label may be there or not."""
        names, known = [column.name for column in self.columns], {*header}
        missing = [name for name in names if name not in known]
        others = {*names, self.label, *self.ignored}
        extra = [name for name in header if name not in others]
        for word, found, step in (
            ("a table without", missing, "add them"),
            ("also", extra, "leave them out"),
        ):
            if found:
                raise ValueError(
                    f"its columns must be those of the training table, got {word} "
                    f"{', '.join(map(shown, found))}; {step}"
                )


def read_encoding(stated: Any, in_shape: tuple[int, ...]) -> Encoding | None:
    """What a file states of the columns of its training table; None where it states nothing.

    Raises:
        ValueError: no encoding, or one of another number of entries than an input has.
    """
    if stated is None:
        return None
    encoding = Encoding(**stated if isinstance(stated, dict) else {})
    if in_shape != (encoding.width,):
        raise ValueError(
            f"encoding must give {in_shape} entries, as many as an input has, got "
            f"{encoding.width}; freeze the network again"
        )
    return encoding


def stated_units(stated: Any) -> str:
    """What radii are measured in, in words, by what a file states of its training table.

    Raises:
        ValueError: no encoding.
    """
    if stated is None:
        return radius_units()
    return radius_units(Encoding(**stated if isinstance(stated, dict) else {}).units)


def numbers(rows: Rows, name: str) -> Float64[np.ndarray, " n"]:
    """A column of finite numbers.

    Raises:
        ValueError: a cell that is missing, no number or not finite.
    """
    found = []
    for row, cell in enumerate(rows.column(name)):
        value = float(cell) if is_number(cell) else math.nan
        if not math.isfinite(value):
            where = rows.where(name, row)
            if is_missing(cell):
                raise missing(where, cell)
            kind = "finite" if is_number(cell) else "a number"
            raise ValueError(
                f"{where} must be {kind}, got {shown(cell)}; correct it, or name the column in "
                "`categories` if it holds words"
            )
        found.append(value)
    return np.array(found, np.float64)


def words(rows: Rows, name: str) -> list[str]:
    """A column of words, none of them missing."""
    found = rows.column(name)
    for row, cell in enumerate(found):
        if is_missing(cell):
            raise missing(rows.where(name, row), cell)
    return [canonical(cell) for cell in found]


def missing(where: str, cell: str) -> ValueError:
    """The error for a cell without a value."""
    return ValueError(
        f"{where} must have a value, got {shown(cell) if cell else 'an empty cell'}; fill it in, "
        "or leave out its row"
    )


def _changes(columns: list[Column]) -> str:
    """Lengths, rounded up: a radius of the number that is said covers the change."""
    lengths = {column.name: 1.0 / column.unit for column in columns}
    if set(lengths.values()) == {1.0}:
        return "1"
    return ", ".join(f"{_raised(length):g} ({name})" for name, length in lengths.items())


def _raised(length: float) -> float:
    """Rounded up to the digits that are shown."""
    return float(Context(prec=6, rounding=ROUND_CEILING).create_decimal(repr(length)))


def radius_units(units: str | None = None) -> str:
    """What radii are measured in, in words; by default the units of the inputs."""
    return f"l2 distance in {units or INPUT_UNITS}"
