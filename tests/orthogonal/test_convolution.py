"""What all orthogonal convolutions share; the rest is in the contracts."""

import pytest
import torch

from unitmargin.orthogonal import ORTHOGONAL_CONVS


@pytest.mark.parametrize("name", ORTHOGONAL_CONVS)
@pytest.mark.parametrize("map_size", [(1, 1), (2, 2), (2, 6), (5, 3)])
def test_frozen_blocks_are_polished(name: str, map_size: tuple[int, int]) -> None:
    frozen = ORTHOGONAL_CONVS[name](4, 3, 3, map_size).freeze()
    values = frozen.singular_values()
    assert values.numel() == 3 * map_size[0] * map_size[1]
    assert (values - 1).abs().max() <= 1e-13  # the promise of polish


@pytest.mark.parametrize("name", ORTHOGONAL_CONVS)
def test_without_a_bias_zero_stays_zero(name: str) -> None:
    layer = ORTHOGONAL_CONVS[name](4, 3, 3, (3, 3), bias=False)
    assert layer.bias is None
    assert layer(torch.zeros(2, 4, 3, 3)).abs().max() == 0
    assert torch.equal(layer.freeze().bias, torch.zeros(3, dtype=torch.float64))
