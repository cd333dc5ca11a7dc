"""Weights of every magnitude brought near 1 by a power of two."""

import math

import pytest
import torch

from unitmargin.orthogonal.magnitude import of_size_one

LARGEST = {torch.float32: 3e38, torch.float64: 1e308}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-38, 1e-10, 1.0, 3.0, 1e20, math.inf])
def test_the_largest_is_near_one_and_mantissas_are_kept(scale: float, dtype: torch.dtype) -> None:
    scale = min(scale, LARGEST[dtype])
    values = torch.linspace(-1.0, 1.0, 7, dtype=dtype) * scale
    found = of_size_one(values)
    ends = (1.0, 2.0) if 1e-30 < scale < 1e30 else (2.0**-8, 2.0**25)  # factors are normal numbers
    assert ends[0] <= float(found.abs().max()) < ends[1]
    assert torch.equal(torch.frexp(found).mantissa, torch.frexp(values).mantissa)


def test_rows_have_a_factor_each_or_one() -> None:
    rows = torch.tensor([[1e-30, 2e-30], [3e20, 1e20], [0.0, 0.0]])
    assert [1.0 <= float(row.abs().max()) < 2.0 for row in of_size_one(rows, 1)] == [1, 1, 0]
    together = of_size_one(rows)
    assert together[0].tolist() == [pytest.approx(0.0, abs=1e-40)] * 2
    assert of_size_one(rows, 1)[2].tolist() == [0.0, 0.0]


def test_a_gradient_comes_back_times_the_factor() -> None:
    values = torch.tensor([0.25, -3.0], requires_grad=True)
    of_size_one(values).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [0.5, 0.5]
