"""T4 of the Fourier transforms: errors stay below their bounds, which count every stage."""

import math

import pytest
import torch

from unitmargin.frozen.transforms import SCALING_ROUNDINGS, TWIDDLE_ERROR, transform_error
from unitmargin.layers.arithmetic import gamma
from unitmargin.layers.fourier import CircularTransform


@pytest.mark.parametrize("size", [(2, 2), (4, 4), (8, 8), (3, 5), (16, 16), (9, 10), (32, 32)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_t4_transforms_stay_below_their_bound(size: tuple[int, int], dtype: torch.dtype) -> None:
    transform = CircularTransform(size).to(dtype)
    unit = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}[dtype]
    bound = transform_error(transform, unit)
    matrix = CircularTransform(size).matrix()
    x = torch.randn(20, 1, *size, dtype=dtype)
    x[0, 0, 0, 0] = 1e5
    real, pairs = transform.analyse(x)
    found = torch.cat((real, pairs.flatten(0, 1))).squeeze(2).mT.double()
    exact = x.double().flatten(1) @ matrix.mT
    ratio = (found - exact).norm(dim=1) / (bound * x.double().flatten(1).norm(dim=1))
    assert ratio.max() < 1
    back = transform.synthesise(real, pairs).double().flatten(1)
    expected = found @ matrix
    ratio = (back - expected).norm(dim=1) / (bound * found.norm(dim=1))
    assert ratio.max() < 1


def test_an_fft_pays_for_each_of_its_stages() -> None:
    unit = 2.0**-24
    stage = TWIDDLE_ERROR * unit + gamma(4, unit) * (math.sqrt(2.0) + TWIDDLE_ERROR * unit)
    total = 9 * stage  # 16 x 16: four stages a side and one for real input
    expected = total / (1 - total) + gamma(SCALING_ROUNDINGS, unit)
    assert transform_error(CircularTransform((16, 16)), unit) == pytest.approx(expected, rel=1e-12)
    assert transform_error(CircularTransform((9, 10)), unit) > 0
