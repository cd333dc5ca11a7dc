"""Test rows of a table that comes without: drawn by a hash of the rows."""

import hashlib
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from unitmargin.data.cells import Rows
from unitmargin.data.split import held_out
from unitmargin.data.table_options import TableOptions
from unitmargin.foundation.cells import is_number
from unitmargin.foundation.numbers import shown


def draw_test_rows(
    rows: Rows, labels: Sequence[int], classes: Sequence[str], options: TableOptions
) -> Bool[np.ndarray, " n"]:
    """Which rows are test rows: those of each class that :func:`held_out` names, and none where a
    table of test rows is named.

    Guarantee: it depends on the seed and on the values of the rows alone, of the label and of the
    columns that are kept; rows that are equal in these are on one side.

    Raises:
        ValueError: a class with fewer than two different rows.
    """
    is_test = np.zeros(len(labels), bool)
    if options.test is not None:
        return is_test
    share, seed = options.choice()
    kept = [place for place, name in enumerate(rows.header) if name not in options.ignore]
    order = sorted(kept, key=rows.header.__getitem__)
    own: list[dict[bytes, list[int]]] = [{} for _ in classes]
    for place, (cells, label) in enumerate(zip(rows.cells, labels, strict=True)):
        values = _hash([cells[column] for column in order], seed)
        own[label].setdefault(values, []).append(place)
    for name, copies in zip(classes, own, strict=True):
        if len(copies) < 2:
            (places,) = copies.values()
            raise ValueError(
                f"class {shown(name)} must have two different rows at least, one to train and one "
                f"to test, got one in {rows.word} {rows.lines[places[0]]}; add rows, leave it out, "
                "or name a table of test rows"
            )
        is_test[held_out(copies, share)] = True
    return is_test


def _hash(cells: list[str], seed: int) -> bytes:
    """Of the values: a number counts as such, however it is written, and -0 is 0."""
    values = [repr(float(cell) + 0.0) if is_number(cell) else cell for cell in cells]
    return hashlib.sha256("\0".join([str(seed), *values]).encode()).digest()
