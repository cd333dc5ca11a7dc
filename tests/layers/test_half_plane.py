"""The FFT path is an isometry, and its derivatives say so."""

import pytest
import torch

from unitmargin.layers.fourier import CircularTransform
from unitmargin.layers.half_plane import Tables, analyse, synthesise

SIZES = [(9, 8), (8, 9), (9, 9), (10, 12)]
"""More than ``MATRIX_LIMIT`` pixels, odd and even sides."""

EXACT = 1e-12


def tables(map_size: tuple[int, int]) -> Tables:
    transform = CircularTransform(map_size)
    return Tables(transform.gather, transform.mirrored, transform.source)


@pytest.mark.parametrize("map_size", SIZES)
def test_it_is_an_isometry_with_its_inverse(map_size: tuple[int, int]) -> None:
    x = torch.randn(2, 3, *map_size, dtype=torch.float64)
    real, pairs = analyse(x, tables(map_size))
    energy = real.square().sum() + pairs.square().sum()
    assert float((energy - x.square().sum()).abs()) < EXACT * float(x.square().sum())
    back = synthesise(real, pairs, tables(map_size), map_size)
    assert float((back - x).abs().max()) < EXACT


@pytest.mark.parametrize("map_size", SIZES)
def test_first_and_second_derivatives(map_size: tuple[int, int]) -> None:
    place = tables(map_size)
    x = torch.randn(1, 1, *map_size, dtype=torch.float64, requires_grad=True)

    def there(x: torch.Tensor) -> torch.Tensor:
        real, pairs = analyse(x, place)
        return torch.cat((real.flatten() ** 2, pairs.flatten() ** 3))

    assert torch.autograd.gradcheck(there, (x,))
    assert torch.autograd.gradgradcheck(lambda x: there(x)[:3], (x,))
    coefficients = tuple(part.detach().requires_grad_() for part in analyse(x, place))
    assert torch.autograd.gradcheck(
        lambda real, pairs: synthesise(real, pairs, place, map_size) ** 2, coefficients
    )


def test_no_maps_are_no_coefficients() -> None:
    x = torch.zeros(0, 2, 9, 10, requires_grad=True)
    real, pairs = analyse(x, tables((9, 10)))
    assert real.shape[1] == pairs.shape[2] == 0
    back = synthesise(real, pairs, tables((9, 10)), (9, 10))
    assert back.shape == x.shape
    back.sum().backward()
    assert x.grad is not None


def test_short_inputs_are_transformed_in_float32() -> None:
    x = torch.randn(1, 2, 9, 9, dtype=torch.bfloat16)
    real, pairs = analyse(x, tables((9, 9)))
    assert real.dtype == pairs.dtype == torch.float32
