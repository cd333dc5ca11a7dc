"""What all orthogonal dense layers share; the rest is in the contracts."""

import pytest
import torch

from unitmargin.orthogonal import ORTHOGONAL_LINEARS
from unitmargin.orthogonal.linear import require_no_growth


def test_growth_is_explained() -> None:
    with pytest.raises(ValueError, match=r"J J\^T = I.*got 3 -> 5;.*PixelUnshuffle"):
        require_no_growth("channels", 3, 5)
    require_no_growth("channels", 3, 3)


@pytest.mark.parametrize("name", ORTHOGONAL_LINEARS)
def test_without_a_bias_zero_stays_zero(name: str) -> None:
    layer = ORTHOGONAL_LINEARS[name](5, 3, bias=False)
    assert layer.bias is None
    assert layer(torch.zeros(2, 5)).abs().max() == 0
    assert torch.equal(layer.freeze().bias, torch.zeros(3, dtype=torch.float64))
