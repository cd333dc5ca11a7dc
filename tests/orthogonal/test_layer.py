"""What all orthogonal layers share; the rest is in the contracts."""

import pytest
import torch

from unitmargin.orthogonal import ORTHOGONAL_CONVS, ORTHOGONAL_LINEARS
from unitmargin.orthogonal.layer import require_no_growth


def test_growth_is_explained() -> None:
    with pytest.raises(ValueError, match=r"J J\^T = I.*got 3 -> 5;.*PixelUnshuffle"):
        require_no_growth("channels", 3, 5)
    require_no_growth("channels", 3, 3)


@pytest.mark.parametrize("name", ORTHOGONAL_LINEARS)
def test_a_dense_layer_without_a_bias_keeps_zero(name: str) -> None:
    layer = ORTHOGONAL_LINEARS[name](5, 3, bias=False)
    assert layer.bias is None
    assert layer(torch.zeros(2, 5)).abs().max() == 0
    assert torch.equal(layer.freeze().bias, torch.zeros(3, dtype=torch.float64))


@pytest.mark.parametrize("name", ORTHOGONAL_CONVS)
@pytest.mark.parametrize("map_size", [(1, 1), (2, 2), (2, 6), (5, 3)])
def test_frozen_blocks_are_polished(name: str, map_size: tuple[int, int]) -> None:
    frozen = ORTHOGONAL_CONVS[name](4, 3, 3, map_size).freeze()
    values = frozen.singular_values()
    assert values.numel() == 3 * map_size[0] * map_size[1]
    assert (values - 1).abs().max() <= 1e-13  # the promise of polish


@pytest.mark.parametrize("name", ORTHOGONAL_CONVS)
def test_a_convolution_without_a_bias_keeps_zero(name: str) -> None:
    layer = ORTHOGONAL_CONVS[name](4, 3, 3, (3, 3), bias=False)
    assert layer.bias is None
    assert layer(torch.zeros(2, 4, 3, 3)).abs().max() == 0
    assert torch.equal(layer.freeze().bias, torch.zeros(3, dtype=torch.float64))
