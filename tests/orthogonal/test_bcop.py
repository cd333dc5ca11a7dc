"""Block convolutions: kernels with few taps that are semi-orthogonal on every torus."""

import pytest
import torch
from jacobians import jacobian

from unitmargin.orthogonal.bcop import BCOPConv2d, bcop_kernel, block_convolve, projectors, wrap
from unitmargin.orthogonal.bjorck import bjorck

EXACTNESS = 1e-12
"""Float64 products of a few orthogonal matrices."""

FLOAT32 = 1e-5
"""The promise of the class on singular values in float32."""

MAPS = [(1, 1), (2, 2), (1, 5), (3, 4), (5, 3)]
CHANNELS = [(2, 5), (5, 2), (3, 3), (4, 4)]


def orthogonal(count: int, side: int) -> torch.Tensor:
    return torch.linalg.qr(torch.randn(count, side, side, dtype=torch.float64))[0]


def test_projectors_have_half_the_rank() -> None:
    for side in (1, 2, 5, 8):
        p = projectors(orthogonal(3, side))
        assert (p @ p - p).abs().max() <= EXACTNESS
        assert (p - p.mT).abs().max() <= EXACTNESS
        assert (p.diagonal(dim1=1, dim2=2).sum(1) - side // 2).abs().max() <= EXACTNESS


def test_block_convolution_is_the_sum_over_pairs_of_taps() -> None:
    kernel = torch.randn(2, 3, 2, 4, dtype=torch.float64)
    block = torch.randn(2, 2, 4, 4, dtype=torch.float64)
    expected = torch.zeros(2, 4, 3, 4, dtype=torch.float64)
    for i in range(3):
        for j in range(2):
            for m in range(2):
                for n in range(2):
                    expected[:, i + m, j + n] += kernel[:, i, j] @ block[m, n]
    assert (block_convolve(kernel, block) - expected).abs().max() <= EXACTNESS


@pytest.mark.parametrize(("inputs", "outputs"), CHANNELS)
@pytest.mark.parametrize("kernel_size", [1, 2, 3, 4, 5])
def test_kernels_have_their_shape_and_full_mass(
    inputs: int, outputs: int, kernel_size: int
) -> None:
    matrices = orthogonal(2 * kernel_size - 1, max(inputs, outputs))
    kernel = bcop_kernel(matrices, inputs, outputs)
    assert kernel.shape == (outputs, inputs, kernel_size, kernel_size)
    # An isometry, or its transpose: every row or column of the operator has norm 1.
    assert abs(float(kernel.square().sum()) - min(inputs, outputs)) <= EXACTNESS


@pytest.mark.parametrize(("inputs", "outputs"), CHANNELS)
@pytest.mark.parametrize("kernel_size", [1, 2, 3, 5])
@pytest.mark.parametrize("map_size", MAPS)
def test_the_explicit_jacobian_is_semi_orthogonal(
    map_size: tuple[int, int], kernel_size: int, inputs: int, outputs: int
) -> None:
    layer = BCOPConv2d(inputs, outputs, kernel_size, map_size)
    matrix = jacobian(layer, torch.zeros(inputs, *map_size)).double()
    assert (torch.linalg.svdvals(matrix) - 1.0).abs().max() <= FLOAT32
    exact = jacobian(layer.freeze(), torch.zeros(inputs, *map_size, dtype=torch.float64))
    assert (torch.linalg.svdvals(exact) - 1.0).abs().max() <= EXACTNESS
    assert (exact - matrix).abs().max() <= FLOAT32


@pytest.mark.parametrize("kernel_size", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("size", [(1, 2), (3, 4), (8, 8)])
def test_padding_is_circular_and_heavier_in_front(kernel_size: int, size: tuple[int, int]) -> None:
    x = torch.randn(2, 3, *size)
    padded = wrap(x, kernel_size)
    height, width = size
    assert padded.shape == (2, 3, height + kernel_size - 1, width + kernel_size - 1)
    rows = (torch.arange(height + kernel_size - 1) - kernel_size // 2) % height
    columns = (torch.arange(width + kernel_size - 1) - kernel_size // 2) % width
    assert torch.equal(padded, x[:, :, rows][:, :, :, columns])


def test_the_kernel_and_the_spectrum_are_the_same_operator() -> None:
    for kernel_size in (2, 3):
        layer = BCOPConv2d(3, 4, kernel_size, (4, 5)).double()
        x = torch.randn(2, 3, 4, 5, dtype=torch.float64)
        by_frequency = super(BCOPConv2d, layer).forward(x)
        assert (layer(x) - by_frequency).abs().max() <= EXACTNESS


def test_ill_conditioned_matrices_contract_in_training_and_are_exact_when_frozen() -> None:
    layer = BCOPConv2d(4, 4, 3, (4, 4))
    with torch.no_grad():
        left, values, right = torch.linalg.svd(layer.raw)
        values[:, -1] = 3e-4 * values[:, 0]
        layer.raw.copy_(left * values[:, None, :] @ right)
        x = torch.zeros(4, 4, 4)
    values = torch.linalg.svdvals(jacobian(layer, x).double())
    assert values.min() < 0.9
    assert values.max() <= 1.0 + 1e-6
    exact = layer.freeze().singular_values()
    assert (exact - 1.0).abs().max() <= EXACTNESS


def test_one_parameter_of_square_matrices_and_no_mask() -> None:
    layer = BCOPConv2d(3, 8, 3, (4, 4))
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == {
        "raw": (5, 8, 8),
        "bias": (8,),
    }
    assert set(layer.state_dict()) == {"raw", "bias"}
    weights = bjorck(layer.raw, 20)
    assert (weights @ weights.mT - torch.eye(8)).abs().max() <= FLOAT32
