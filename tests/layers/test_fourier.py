"""Circular convolutions by frequency against the explicit ones."""

import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import conv2d, pad

from unitmargin.layers.fourier import (
    MATRIX_LIMIT,
    CircularTransform,
    Spectrum,
    convolve,
    frequencies,
    from_complex,
)
from unitmargin.layers.kernels import KernelTransform

EXACTNESS = 1e-12
"""Sums of up to 300 float64 products of size 1."""

ROUNDING = 3e-5
"""The same in float32."""

SIDES = st.integers(1, 9)
KERNELS = st.integers(1, 5)


def explicit_convolution(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
    """Tap by tap: tap (p, q) reads the pixel (p - height // 2, q - width // 2) further on."""
    height, width = kernel.shape[2:]
    output = bias.view(1, -1, 1, 1).expand(len(x), -1, *x.shape[2:]).clone()
    for p in range(height):
        for q in range(width):
            moved = x.roll((height // 2 - p, width // 2 - q), (2, 3))
            output += torch.einsum("oi,bihw->bohw", kernel[:, :, p, q], moved)
    return output


def by_frequency(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
    size = (x.shape[2], x.shape[3])
    transform = CircularTransform(size).to(x.dtype)
    spectrum = KernelTransform((kernel.shape[2], kernel.shape[3]), size).to(x.dtype)(kernel)
    return convolve(x, spectrum, bias, transform)


@given(SIDES, SIDES, KERNELS, KERNELS, st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
@example(1, 1, 5, 4, 2, 2, 0)
@example(2, 2, 3, 3, 2, 2, 0)
@example(8, 8, 3, 3, 2, 2, 0)  # the largest map transformed by a matrix
@example(9, 8, 3, 3, 2, 2, 0)  # the smallest transformed by FFT, one odd side
@example(9, 9, 5, 4, 2, 2, 0)
def test_by_frequency_equals_the_explicit_circular_convolution(
    height: int, width: int, kh: int, kw: int, inputs: int, outputs: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, inputs, height, width, generator=generator, dtype=torch.float64)
    kernel = torch.randn(outputs, inputs, kh, kw, generator=generator, dtype=torch.float64)
    bias = torch.randn(outputs, generator=generator, dtype=torch.float64)
    expected = explicit_convolution(x, kernel, bias)
    assert (by_frequency(x, kernel, bias) - expected).abs().max() <= EXACTNESS
    narrow = by_frequency(x.float(), kernel.float(), bias.float())
    assert narrow.dtype == torch.float32
    assert (narrow.double() - expected).abs().max() <= ROUNDING


@pytest.mark.parametrize(("size", "map_size"), [(3, (4, 5)), (5, (6, 9)), (1, (2, 2))])
def test_by_frequency_equals_conv2d_with_circular_padding(
    size: int, map_size: tuple[int, int]
) -> None:
    x = torch.randn(2, 3, *map_size, dtype=torch.float64)
    kernel = torch.randn(4, 3, size, size, dtype=torch.float64)
    bias = torch.randn(4, dtype=torch.float64)
    expected = conv2d(pad(x, (size // 2,) * 4, mode="circular"), kernel, bias)
    assert (by_frequency(x, kernel, bias) - expected).abs().max() <= EXACTNESS


@given(SIDES, SIDES)
def test_every_frequency_is_kept_once(height: int, width: int) -> None:
    chosen = frequencies(height, width)
    mirrored = [(-r % height, -c % width) for r, c in chosen.pairs]
    every = [*chosen.real, *chosen.pairs, *mirrored]
    assert sorted(every) == [(r, c) for r in range(height) for c in range(width)]
    assert all((-r % height, -c % width) == (r, c) for r, c in chosen.real)
    assert chosen.real[0] == (0, 0)


@given(SIDES, SIDES, st.integers(0, 99))
@example(9, 8, 0)
def test_the_transform_is_an_isometry_with_its_transpose_as_inverse(
    height: int, width: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    transform = CircularTransform((height, width)).double()
    x, y = torch.randn(2, 1, 2, height, width, generator=generator, dtype=torch.float64)
    real, pairs = transform.analyse(x)
    assert real.numel() + pairs.numel() == x.numel()
    assert (transform.synthesise(real, pairs) - x).abs().max() <= EXACTNESS
    other_real, other_pairs = transform.analyse(y)
    inner = (real * other_real).sum() + (pairs * other_pairs).sum()
    assert abs(float(inner - (x * y).sum())) <= EXACTNESS


def test_both_ways_to_transform_agree() -> None:
    small, large = CircularTransform((8, 8)), CircularTransform((8, 9))
    assert small.by_matrix
    assert not large.by_matrix
    assert small.n_pixels == MATRIX_LIMIT < large.n_pixels
    forced = CircularTransform((8, 8)).double()
    forced.by_matrix = False
    forced._register_gathers(frequencies(8, 8))
    x = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    for mine, other in zip(small.double().analyse(x), forced.analyse(x), strict=True):
        assert (mine - other).abs().max() <= EXACTNESS


def test_tables_are_made_anew_in_float64() -> None:
    transform = CircularTransform((3, 5)).double()
    assert torch.equal(transform.basis, CircularTransform((3, 5)).matrix())
    kernel = KernelTransform((3, 3), (4, 5)).double()
    assert torch.equal(kernel.pairs, kernel._tables()[1])
    there_and_back = CircularTransform((3, 5)).half().double()
    assert torch.equal(there_and_back.basis, transform.basis)


def test_tables_have_the_default_type() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        transform, kernel = CircularTransform((3, 5)), KernelTransform((3, 3), (4, 5))
        assert torch.equal(transform.basis, transform.matrix())
        assert torch.equal(kernel.pairs, kernel._tables()[1])
    finally:
        torch.set_default_dtype(torch.float32)
    assert CircularTransform((3, 5)).basis.dtype == torch.float32


def test_tables_are_not_part_of_the_state() -> None:
    assert not CircularTransform((3, 5)).state_dict()
    assert not CircularTransform((9, 9)).state_dict()
    assert not KernelTransform((3, 3), (3, 5)).state_dict()


def test_the_bias_enters_every_pixel_once() -> None:
    zero = Spectrum(torch.zeros(1, 2, 1), torch.zeros(7, 2, 2, 1))
    bias = torch.tensor([1.0, -2.0])
    output = convolve(torch.rand(1, 1, 3, 5), zero, bias, CircularTransform((3, 5)))
    assert (output - bias.view(1, 2, 1, 1)).abs().max() <= ROUNDING


def test_complex_blocks_round_trip() -> None:
    real, pairs = torch.randn(1, 2, 3), torch.randn(4, 2, 3, dtype=torch.complex64)
    spectrum = from_complex(real, pairs)
    assert spectrum.pairs.shape == (4, 2, 2, 3)
    assert torch.equal(spectrum.complex_pairs(), pairs)


def test_a_frequency_multiplies_its_wave() -> None:
    """One complex block turns the wave of its frequency by the block's angle."""
    height, width = 1, 5
    columns = torch.arange(5, dtype=torch.float64)
    wave = (2 * math.pi * columns / 5).cos().view(1, 1, 1, 5)
    pairs = torch.tensor([[0.0, 1.0], [0.0, 1.0]], dtype=torch.float64).view(2, 2, 1, 1)
    spectrum = Spectrum(torch.ones(1, 1, 1, dtype=torch.float64), pairs)
    output = convolve(wave, spectrum, None, CircularTransform((height, width)).double())
    expected = (2 * math.pi * columns / 5 + math.pi / 2).cos().view(1, 1, 1, 5)
    assert (output - expected).abs().max() <= EXACTNESS


def test_another_map_size_is_refused() -> None:
    transform = CircularTransform((2, 4))
    spectrum = KernelTransform((3, 3), (2, 4))(torch.rand(1, 1, 3, 3))
    with pytest.raises(ValueError, match="map size 2 x 4 .* got 4 x 2"):
        convolve(torch.rand(1, 1, 4, 2), spectrum, None, transform)


def test_a_transform_made_on_another_device_leaves_nothing_behind() -> None:
    with torch.device("meta"):
        away = CircularTransform((5, 4))
    assert away.basis.is_meta
    here = CircularTransform((5, 4))
    x = torch.randn(2, 3, 5, 4)
    torch.testing.assert_close(here.synthesise(*here.analyse(x)), x)
    torch.testing.assert_close(away.to_empty(device="cpu").basis, here.basis)
