"""The factors of the transform of a map: one table a side, and a join of two entries a row."""

import pytest
import torch

from unitmargin.layers.fourier import CircularTransform
from unitmargin.layers.separable import by_kind, separable

SIZES = [(1, 1), (1, 2), (2, 2), (1, 7), (6, 1), (3, 3), (3, 4), (4, 5), (8, 8), (9, 10), (7, 13)]


@pytest.mark.parametrize("size", SIZES)
def test_the_factors_are_the_transform(size: tuple[int, int]) -> None:
    parts = separable(size)
    product = parts.join.matrix() @ torch.kron(parts.rows, parts.columns)
    expected = CircularTransform(size).matrix()[by_kind(size)]
    assert float((product - expected).abs().max()) < 1e-14


@pytest.mark.parametrize("size", SIZES)
def test_the_join_is_orthogonal_and_has_two_entries_in_each_row_and_column(
    size: tuple[int, int],
) -> None:
    join = separable(size).join
    matrix = join.matrix()
    assert float((matrix @ matrix.mT - torch.eye(len(matrix))).abs().max()) < 4e-16
    assert int((matrix != 0).sum(0).max()) <= 2
    assert torch.equal(join.transposed().matrix(), matrix.mT)


def test_the_order_by_kind_is_a_permutation() -> None:
    for height, width in SIZES:
        assert torch.equal(by_kind((height, width)).sort().values, torch.arange(height * width))
