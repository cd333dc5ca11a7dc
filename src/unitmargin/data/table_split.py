"""Test rows of a table that comes without: drawn by a hash of the rows."""

import hashlib
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from unitmargin.data.cells import Rows, is_number
from unitmargin.data.table_options import TEST_SHARE, TableOptions
from unitmargin.foundation.numbers import shown


def draw_test_rows(
    rows: Rows, labels: Sequence[int], classes: Sequence[str], options: TableOptions
) -> Bool[np.ndarray, " n"]:
    """Which rows are test rows: those of each class with the lowest hashes.

    None are where a table of test rows is named. Else the share of each class is rounded, with one
    row at least on each side.

    Guarantee: it depends on the seed and on the values of the rows alone; equal rows are on one
    side, where they may make the share smaller.

    Raises:
        ValueError: a class with one row, or no test row at all.
    """
    is_test = np.zeros(len(rows.cells), bool)
    if options.test is not None:
        return is_test
    share = TEST_SHARE if options.test_share is None else options.test_share
    order = sorted(range(len(rows.header)), key=rows.header.__getitem__)
    seed = options.split_seed or 0
    hashes = [_hash([cells[place] for place in order], seed) for cells in rows.cells]
    own = np.array(labels)
    for number, name in enumerate(classes):
        places = np.flatnonzero(own == number)
        if len(places) < 2:
            raise ValueError(
                f"class {shown(name)} must have two rows at least, one to train and one to test, "
                f"got one in {rows.word} {rows.lines[int(places[0])]}; add rows, or leave it out"
            )
        count = min(max(1, math.floor(share * len(places) + 0.5)), len(places) - 1)
        limit = sorted(hashes[place] for place in places)[count]
        is_test[[place for place in places if hashes[place] < limit]] = True
    if not is_test.any():
        raise ValueError(
            "rows of a class must differ if some of them are to be test rows, got copies of one; "
            "name a table of test rows"
        )
    return is_test


def _hash(cells: list[str], seed: int) -> bytes:
    """Of the values: a number counts as such, however it is written."""
    values = [repr(float(cell)) if is_number(cell) else cell for cell in cells]
    return hashlib.sha256("\0".join([str(seed), *values]).encode()).digest()
