"""Certificates row by row: which are chosen, and how people read them."""

from collections.abc import Collection, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from numbers import Integral
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from unitmargin.foundation.numbers import as_tensor, shown

DIGITS = Context(prec=6, rounding=ROUND_FLOOR)
"""Digits of a number that people read, rounded down: a larger radius was not certified."""

RAISED = Context(prec=6, rounding=ROUND_CEILING)
"""The same of an upper bound."""

SHOWN = 5
"""Rows that are shown of a batch."""

STEP = "pass a whole number, a slice, positions or a mask"


def positions(index: object, length: int) -> Int64[Tensor, " chosen"]:
    """Positions of the samples that an index chooses: a number, a slice, positions or a mask.

    Raises:
        TypeError: another kind.
        IndexError: a position that is not there, or a mask of another length.

    Example:
        >>> positions(-1, 4), positions([True, False, True], 3)
        (tensor([3]), tensor([0, 2]))
    """
    if isinstance(index, slice):
        return torch.tensor(range(length)[index], dtype=torch.int64)
    given = _listed(index)
    if given and all(isinstance(entry, bool | np.bool_) for entry in given):
        if len(given) != length:
            found = f"{len(given)} entries"
            raise IndexError(f"index must be a mask of {length} entries, got {found}; {STEP}")
        return torch.tensor([bool(entry) for entry in given]).nonzero().flatten()
    for entry in given:
        if not isinstance(entry, Integral) or isinstance(entry, bool):
            raise TypeError(f"index must choose samples, got {shown(entry)} in it; {STEP}")
        if not -length <= int(entry) < length:
            rule = f"index must be at least {-length} and below {length}"
            raise IndexError(f"{rule}, got {entry}; there are {length} samples")
    return torch.tensor([int(entry) % length for entry in given], dtype=torch.int64)


def _listed(index: object) -> list[Any]:
    """The entries of positions or a mask, and a number as the only one."""
    if isinstance(index, list):
        return index
    if isinstance(index, Integral) and not isinstance(index, bool):
        return [index]
    if isinstance(index, float | bool | tuple | str | bytes | None):
        raise TypeError(f"index must choose samples, got {shown(index)}; {STEP}")
    given = as_tensor("index", index)
    if given.ndim > 1:
        found = f"shape {tuple(given.shape)}"
        raise IndexError(f"index must be one number or one entry a sample, got {found}; {STEP}")
    entries: list[Any] = given.reshape(-1).tolist()
    return entries


def table(columns: Mapping[str, Tensor], raised: Collection[str] = ()) -> list[tuple[str, ...]]:
    """Header and first rows as words, whole numbers as they are and others rounded down, those of
    the columns ``raised`` up.

    Example:
        >>> table({"label": torch.tensor([3]), "radius": torch.tensor([0.12345678])})
        [('', 'label', 'radius'), ('0', '3', '0.123456')]
    """
    words = [
        [_word(value, RAISED if name in raised else DIGITS) for value in column[:SHOWN].tolist()]
        for name, column in columns.items()
    ]
    rows = zip(*words, strict=True)
    return [("", *columns), *((str(place), *row) for place, row in enumerate(rows))]


def as_text(title: str, rows: Sequence[Sequence[str]], more: int) -> str:
    """A title, aligned rows, and how many more there are."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.rjust, row, widths)) for row in rows]
    return "\n".join([title, *lines, *([f"... {more} more"] if more else [])])


def as_html(title: str, rows: Sequence[Sequence[str]], more: int) -> str:
    """The same as a table for notebooks; nothing in it needs to be escaped."""
    head, *body = rows
    header = "".join(f"<th>{word}</th>" for word in head)
    lines = ("".join(f"<td>{word}</td>" for word in row) for row in body)
    content = "".join(f"<tr>{line}</tr>" for line in (header, *lines))
    rest = f"<p>... {more} more</p>" if more else ""
    return f"<table><caption>{title}</caption>{content}</table>{rest}"


def _word(value: int | float, digits: Context) -> str:
    return str(value) if isinstance(value, int) else str(digits.create_decimal(value))


def sample_name(place: int, index: Tensor | None = None) -> str:
    """What to call an input of a batch: by its number among the test samples, if that is given."""
    return f"sample {place}" if index is None else f"test sample {int(index[place])}"
