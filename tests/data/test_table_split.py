"""The split of a table: of the rows' values and a seed, in whatever order and file they stand."""

import numpy as np
import pytest

from unitmargin.data.cells import Rows
from unitmargin.data.table_options import TableOptions
from unitmargin.data.table_split import draw_test_rows

RANDOM = np.random.default_rng(0)
CELLS = [[repr(float(number)), str(number > 0)] for number in RANDOM.normal(size=100)]
LABELS = [row % 4 // 3 for row in range(100)]


def drawn(cells: list[list[str]], labels: list[int], header: str = "ab", **options: object) -> list:
    rows = Rows([*header], cells, [*range(len(cells))], "line")
    return list(draw_test_rows(rows, labels, ("x", "y"), TableOptions(**options)))


def test_it_is_a_share_of_each_class() -> None:
    for share, counts in ((0.2, (15, 5)), (0.5, (37, 12)), (0.001, (1, 1)), (0.999, (74, 24))):
        found = np.array(drawn(CELLS, LABELS, test_share=share))
        assert (found[np.array(LABELS) == 0].sum(), found[np.array(LABELS) == 1].sum()) == counts


def test_it_depends_on_values_and_seed_alone() -> None:
    first = drawn(CELLS, LABELS)
    order = RANDOM.permutation(100)
    shuffled = drawn([CELLS[place] for place in order], [LABELS[place] for place in order])
    assert shuffled == [first[place] for place in order]
    turned = [cells[::-1] for cells in CELLS]
    assert drawn(turned, LABELS, "ba") == first
    written = [[f"{float(number):.20e}", word] for number, word in CELLS]
    assert drawn(written, LABELS) == first
    assert drawn(CELLS, LABELS, split_seed=1) != first
    assert drawn(CELLS, LABELS, split_seed=0) == first


def test_equal_rows_are_on_one_side() -> None:
    cells, labels = CELLS[:30] * 3, LABELS[:30] * 3
    found = drawn(cells, labels)
    assert found[:30] == found[30:60] == found[60:]
    assert any(found)


def test_what_is_ignored_does_not_tell_rows_apart() -> None:
    """As the number of a row, by which copies lay on both sides."""
    cells, labels = CELLS[:30] * 3, LABELS[:30] * 3
    numbered = [[str(row), *own] for row, own in enumerate(cells)]
    found = drawn(numbered, labels, "iab", ignore=["i"])
    assert found == drawn(cells, labels)
    assert found[:30] == found[30:60] == found[60:]
    assert drawn(numbered, labels, "iab") != found


def test_a_class_of_one_row_or_of_its_copies_is_refused() -> None:
    for cells, labels in ((CELLS[:3], [0, 0, 1]), (CELLS[:2] + [["1", "2"]] * 3, [0, 0, 1, 1, 1])):
        with pytest.raises(ValueError, match="class 'y' must have two different rows at least"):
            drawn(cells, labels)


def test_classes_of_many_copies_have_test_rows() -> None:
    cells = [CELLS[row % 3] for row in range(30)] + CELLS[:20]
    found = drawn(cells, [0] * 30 + [1] * 20)
    assert sum(found[:30]) == 10
    assert sum(found[30:]) == 4


def test_no_row_is_drawn_where_test_rows_have_a_table() -> None:
    assert not any(drawn(CELLS, LABELS, test="b.csv"))


def test_zero_has_no_sign() -> None:
    cells = [[sign + cell[0].lstrip("-"), cell[1]] for cell in CELLS[:30] for sign in ("", "-")]
    zeros = [[sign + "0.0", word] for word in map(str, range(30)) for sign in ("", "-")]
    labels = [0, 0, 1, 1] * 15
    found = drawn(zeros, labels)
    assert any(found)
    assert found[::2] == found[1::2]
    assert drawn(cells, labels)[::2] != drawn(cells, labels)[1::2]
