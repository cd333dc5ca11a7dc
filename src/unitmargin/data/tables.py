"""Tables with a row for each sample: a label column, numbers and categories."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float64

from unitmargin.data.cells import PARQUET, Rows, whole
from unitmargin.data.dataset import Dataset
from unitmargin.data.encoding import Column, Encoding, numbers, words
from unitmargin.data.files import DataError, missing_test, not_found
from unitmargin.data.parquet_columns import image_columns
from unitmargin.data.samples import Samples
from unitmargin.data.split_options import LABELS, SplitOptions
from unitmargin.data.table_options import TableOptions
from unitmargin.data.table_split import draw_test_rows
from unitmargin.foundation.cells import class_order, is_missing, is_number
from unitmargin.foundation.choice import advice, require_choice
from unitmargin.foundation.numbers import shown

MOST_CATEGORIES = 100
"""Categories of a column: one with more holds names or codes of the rows, not properties."""


Chosen = Bool[np.ndarray, " n"]
"""Which rows are training rows."""


class UnfitColumnError(ValueError):
    """A column that is of no use as it is, whatever a single cell says."""


class _Labels(NamedTuple):
    """The label column, the names of the classes, and the class of each row."""

    column: str
    classes: tuple[str, ...]
    numbers: list[int]


def load_table(path: Path, options: TableOptions) -> Dataset:
    """The data set of a ``.csv`` or ``.parquet`` file with a header.

    A column whose cells are all numbers becomes one entry of an input, a column of words one entry
    for each of its categories (:class:`Column`). Classes are the values of the label column,
    sorted. Without a table of test rows a share of each class is taken, by a hash of the seed and
    the row: in whatever order rows stand, the split is the same, and rows that are equal in label
    and columns that are kept are never on both sides of it. Means and deviations are those of the
    training rows alone.

    Shapes: inputs are float32 ``(n, entries)``.

    Raises:
        DataError: a cell that is missing, no number or not finite, by its column and line; a column
            of numbers with commas in them; one that is constant in the training rows under the
            scale ``features``; fewer than two classes, or two rows of one; columns that are not
            there; no table of test rows where it is named.
        ValueError: options that do not fit each other.

    Example:
        >>> load_table(Path("wine.csv"), TableOptions(scale="features"))  # doctest: +SKIP
    """
    _require_fit(options)
    rows = _whole(path, options)
    try:
        labels = _labels(rows, options)
        kept = _kept(rows.header, labels.column, options)
        is_test = draw_test_rows(rows, labels.numbers, labels.classes, options)
        encoding = _encoding(rows, ~is_test, labels.column, kept, options)
        inputs = torch.from_numpy(encoding.encode(rows))
    except ValueError as fault:
        raise DataError(f"{path}: {fault}") from None
    numbers = torch.tensor(labels.numbers)
    train = Samples(inputs[~is_test], numbers[~is_test])
    if options.test is None:
        test = Samples(inputs[is_test], numbers[is_test])
    else:
        test = _other_table(Path(options.test).expanduser(), encoding, labels)
    return Dataset("table", train, test, labels.classes, encoding=encoding)


def usable(path: Path, options: TableOptions) -> tuple[TableOptions, list[str]]:
    """The options with all columns ignored that :func:`load_table` cannot use as a whole, constant
    ones and those with too many categories, and the columns that are left. A single wrong cell is
    no reason.

    Raises:
        DataError: what :func:`load_table` refuses but for such columns.
    """
    rows = _whole(path, options)
    try:
        labels = _labels(rows, options)
        while True:  # which rows are training rows depends on the columns that are kept
            kept = _kept(rows.header, labels.column, options)
            is_test = draw_test_rows(rows, labels.numbers, labels.classes, options)
            unfit = [name for name in kept if _is_unfit(rows, ~is_test, name, options)]
            if not unfit:
                return options, kept
            options = options.changed(ignore=[*options.ignore, *unfit])
    except ValueError as fault:
        raise DataError(f"{path}: {fault}") from None


def _is_unfit(rows: Rows, trained: Chosen, name: str, options: TableOptions) -> bool:
    try:
        _column(rows, trained, name, options)
    except UnfitColumnError:
        return True
    return False


def _whole(path: Path, options: TableOptions) -> Rows:
    """All rows; of a table of images it is said where it belongs."""
    images = image_columns(path) if path.suffix.lower() == PARQUET and path.is_file() else []
    if left := [name for name in images if name not in options.ignore]:
        raise DataError(
            f"{path}: must hold numbers and words, got images in {shown(left[0])}; write name = "
            '"images" in [data], or leave out the column by `ignore`'
        )
    return whole(path)


def _find_labels(rows: Rows, column: str, classes: tuple[str, ...]) -> list[int]:
    """The class of each row by its name.

    Raises:
        ValueError: a name that is no class.
    """
    known = {name: number for number, name in enumerate(classes)}
    found = []
    for row, word in enumerate(words(rows, column)):
        if word not in known:
            raise ValueError(
                f"{rows.where(column, row)} must be a class ({', '.join(map(shown, classes))}), "
                f"got {shown(word)}; correct it, or leave out its row"
            )
        found.append(known[word])
    return found


def _require_fit(options: TableOptions) -> None:
    for what in SplitOptions.model_fields if options.test is not None else ():
        if (given := getattr(options, what)) is not None:
            raise ValueError(
                f"{what} must be left out where test names a table, got {given}; leave out one of "
                "them"
            )
    if options.units and options.scale != "units":
        raise ValueError(
            f"units must be left out under the scale {options.scale!r}, got {options.units}; "
            'write scale = "units"'
        )


def _labels(rows: Rows, options: TableOptions) -> _Labels:
    column = _label_column(rows.header, options.label)
    found = words(rows, column)
    whole_numbers = all(map(is_number, found))
    if whole_numbers:
        for row, word in enumerate(found):
            if not float(word).is_integer():
                raise ValueError(
                    f"{rows.where(column, row)} must be a whole number or a word, the name of a "
                    f"class, got {shown(word)}; name another label column"
                )
    names = class_order(found)
    if len(names) < 2:
        raise ValueError(
            f"{shown(column)} must hold two classes at least, got {shown(names[0])} alone; name "
            "another label column"
        )
    return _Labels(column, tuple(names), _find_labels(rows, column, tuple(names)))


def _label_column(header: list[str], given: str | None) -> str:
    if given is not None:
        require_choice("label", given, header)
        return given
    found = [name for name in header if name.lower() in LABELS]
    if len(found) != 1:
        raise ValueError(
            "label must name the column of the classes, which is not told by its name, got the "
            f"columns {', '.join(map(shown, header))}; pass --label NAME to init, or write "
            'label = "NAME" under [data]'
        )
    return found[0]


def _encoding(
    rows: Rows, trained: Chosen, label: str, kept: list[str], options: TableOptions
) -> Encoding:
    """Categories are those of all rows, means and deviations those of the training rows."""
    columns = [_column(rows, trained, name, options) for name in kept]
    return Encoding(label=label, scale=options.scale, columns=columns, ignored=options.ignore)


def _kept(header: list[str], label: str, options: TableOptions) -> list[str]:
    """The columns of the inputs; raises unless all that are named are there."""
    known = [name for name in header if name != label]
    for what in ("ignore", "categories", "units"):
        for name in getattr(options, what):
            if name not in known:
                raise ValueError(
                    f"{what} must name columns ({', '.join(map(shown, known))}), got "
                    f"{shown(name)}; {advice(name, known)}"
                )
    kept = [name for name in known if name not in options.ignore]
    if not kept:
        raise ValueError("a column beside the label must be left, got none; ignore fewer columns")
    return kept


def _column(rows: Rows, trained: Chosen, name: str, options: TableOptions) -> Column:
    unit = options.units.get(name, 1.0)
    holds_numbers = any(is_number(cell) and not is_missing(cell) for cell in rows.column(name))
    if name in options.categories or not holds_numbers:
        if name not in options.categories:
            _require_words(rows, name)
        categories = sorted(set(words(rows, name)))
        if len(categories) > MOST_CATEGORIES:
            raise UnfitColumnError(
                f"{shown(name)} must have at most {MOST_CATEGORIES} categories, got "
                f"{len(categories)}; leave it out by `ignore`"
            )
        if len(categories) < 2 and options.scale == "features":
            raise _constant(name, categories[0])
        return Column(name=name, unit=unit, categories=categories)
    found = numbers(rows, name)  # of all rows, so that a wrong cell is named where it stands
    if options.scale != "features":
        column = Column(name=name, unit=unit)
        column.require_digits(found[trained])
        return column
    mean, deviation = _moments(found[trained])
    if deviation == 0.0:
        raise _constant(name, rows.column(name)[int(trained.argmax())])
    if not (math.isfinite(deviation) and math.isfinite(mean)):
        raise ValueError(
            f"{shown(name)} must have a standard deviation in float64, got numbers too far apart; "
            "write it in another unit"
        )
    return Column(name=name, shift=mean, unit=deviation)


def _require_words(rows: Rows, name: str) -> None:
    """Refuse numbers with commas in them, for decimals or thousands, which would be categories."""
    found = [(row, cell) for row, cell in enumerate(rows.column(name)) if not is_missing(cell)]
    if found and all(
        any(is_number(cell.replace(",", point)) for point in ("", ".")) for _, cell in found
    ):
        row, cell = found[0]
        raise ValueError(
            f"{rows.where(name, row)} must be a number with a decimal point and no other sign "
            f"between its digits, got {shown(cell)}; write all of {shown(name)} so, or name it in "
            "`categories` if it holds words"
        )


def _moments(column: Float64[np.ndarray, " n"]) -> tuple[float, float]:
    """Mean and standard deviation; of numbers that are all the same exactly 0, at any magnitude."""
    origin, largest = column[0], float(np.abs(column).max())
    with np.errstate(over="ignore", invalid="ignore"):
        apart = column - origin
        width = float(np.abs(apart).max())
        if width == 0.0 or not math.isfinite(width):
            return largest, width
        return float(origin + width * (apart / width).mean()), width * float((apart / width).std())


def _constant(name: str, value: str) -> UnfitColumnError:
    return UnfitColumnError(
        f"{shown(name)} must differ among the training rows to have a standard deviation, got "
        f"{shown(value)} in all of them; leave it out by `ignore`"
    )


def _other_table(path: Path, encoding: Encoding, labels: _Labels) -> Samples:
    if not path.is_file():
        raise missing_test(not_found(path, "a .csv or .parquet file"))
    rows = whole(path)
    try:
        if labels.column not in rows.header:
            raise ValueError(
                f"it must have the label column {shown(labels.column)}, got the columns "
                f"{', '.join(map(shown, rows.header))}; add it"
            )
        encoding.require_header(rows.header)
        found = _find_labels(rows, labels.column, labels.classes)
        return Samples(torch.from_numpy(encoding.encode(rows)), torch.tensor(found))
    except ValueError as fault:
        raise DataError(f"{path}: {fault}") from None
