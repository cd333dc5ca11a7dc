"""Layers without a weight: rearrangements, pooling, input normalisation."""

import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jacobians import gnp_error, jacobian
from torch import Tensor

from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.l2_pool import L2Pool
from unitmargin.layers.normalize import NORMALIZATIONS, Normalize, normalize_from
from unitmargin.layers.rearrangement import Flatten, MaxPool, PixelUnshuffle, Widen

ROUNDING = 1e-6
"""A few float32 operations on numbers of size 1."""


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_pixel_unshuffle_moves_blocks_into_channels(
    channels: int, height: int, width: int, factor: int
) -> None:
    shape = (1, channels, factor * height, factor * width)
    x = torch.arange(float(torch.tensor(shape).prod())).view(shape)
    moved = PixelUnshuffle(factor)(x)
    assert moved.shape == (1, channels * factor**2, height, width)
    for c in range(channels):
        for i in range(factor):
            for j in range(factor):
                block = x[0, c, i::factor, j::factor]
                assert torch.equal(moved[0, c * factor**2 + i * factor + j], block)


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_widening_keeps_distances_and_appends_zeros(factor: int) -> None:
    layer, x = Widen(factor), torch.randn(2, 3, 4, 5, dtype=torch.float64)
    wide = layer(x)
    assert wide.shape == (2, 3 * factor, 4, 5)
    assert torch.equal(wide[:, :3], x)
    assert not wide[:, 3:].any()
    matrix = jacobian(layer, x[0])
    assert torch.equal(matrix.mT @ matrix, torch.eye(60, dtype=torch.float64))
    assert (layer.gnp, layer.gains()) == (False, (1.0, 1.0))


def test_flatten_keeps_the_order() -> None:
    x = torch.rand(2, 3, 4, 5)
    assert torch.equal(Flatten()(x), x.reshape(2, 60))


@pytest.mark.parametrize("shape", [(1, 4, 4), (2, 2, 2), (3, 6, 4), (1, 10, 2)])
@pytest.mark.parametrize("layer", [Flatten(), PixelUnshuffle(2), MaxPool(2)], ids=lambda x: x.kind)
def test_rearrangements_and_pooling_are_gnp(layer: torch.nn.Module, shape: tuple[int, ...]) -> None:
    assert gnp_error(layer, torch.randn(shape, dtype=torch.float64)) == 0.0


def test_max_pool_takes_the_maximum_of_disjoint_windows() -> None:
    x = torch.randn(2, 3, 6, 4)
    pooled = MaxPool(2)(x)
    expected = [[x[:, :, r : r + 3, c : c + 2].amax((2, 3)) for c in (0, 2)] for r in (0, 3)]
    assert torch.equal(pooled, torch.stack([torch.stack(row, 2) for row in expected], 2))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_scaled_average_pool_is_gnp_and_sums_disjoint_windows(size: int) -> None:
    layer = ScaledAveragePool(size)
    x = torch.randn(2, 3, 2 * size, size, dtype=torch.float64)
    assert gnp_error(layer, x[0]) <= 1e-15
    expected = x.unflatten(2, (2, size)).unflatten(4, (1, size)).sum((3, 5)) / size
    assert (layer(x) - expected).abs().max() <= 1e-15 * size**2
    assert layer.norm() == 1.0


def test_scaled_average_pool_refuses_a_ragged_map() -> None:
    with pytest.raises(ValueError, match="multiple of 2 on both sides, got 3 x 4"):
        ScaledAveragePool(2)(torch.zeros(1, 1, 3, 4))


@pytest.mark.parametrize("shape", [(1, 1, 3, 4), (1, 1, 4, 3), (1, 1, 1, 2)])
def test_max_pool_refuses_windows_that_would_overlap(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        ValueError, match=f"multiple of 2 on both sides, got {shape[2]} x {shape[3]}"
    ):
        MaxPool(2)(torch.zeros(shape))


def test_normalize_shifts_and_scales_each_channel() -> None:
    layer = Normalize(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 4.0]))
    image = torch.tensor([[[[3.0]], [[6.0]]]])
    assert layer(image).tolist() == [[[[4.0]], [[1.0]]]]
    assert layer(image.flatten(1)).tolist() == [[4.0, 1.0]]
    assert layer.norm() == 2.0


def test_the_norm_of_normalize_is_that_of_its_jacobian() -> None:
    layer = Normalize(torch.rand(3), torch.rand(3) + 0.1).double()
    matrix = jacobian(layer, torch.rand(3, 2, 2, dtype=torch.float64))
    assert abs(float(torch.linalg.matrix_norm(matrix, 2)) / layer.norm() - 1) <= 1e-12


@pytest.mark.parametrize("std", [[1.0, 0.0], [1.0, -1.0], [1.0, torch.nan], [torch.inf, 1.0]])
def test_normalize_refuses_useless_deviations(std: list[float]) -> None:
    with pytest.raises(ValueError, match="std must be positive"):
        Normalize(torch.zeros(2), torch.tensor(std))


def test_normalize_refuses_a_mean_that_is_not_finite() -> None:
    with pytest.raises(ValueError, match="all entries finite"):
        Normalize(torch.tensor([torch.nan]), torch.ones(1))


def expected_statistics(inputs: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    columns = inputs.double().movedim(1, 0).flatten(1)
    mean, one = columns.mean(1), torch.ones(len(columns), dtype=torch.float64)
    variances = ((columns - mean[:, None]) ** 2).mean(1)
    return {
        "none": (torch.zeros_like(mean), one),
        "centre": (mean, one),
        "scalar": (mean, one * variances.mean().sqrt()),
        "channel": (mean, variances.sqrt()),
    }[mode]


@pytest.mark.parametrize("mode", NORMALIZATIONS)
@pytest.mark.parametrize("shape", [(20, 3, 2, 4), (20, 5)])
def test_statistics_of_each_mode(mode: str, shape: tuple[int, ...]) -> None:
    scales = torch.linspace(0.5, 2.0, shape[1]).view(1, -1, *(1,) * (len(shape) - 2))
    inputs = scales * torch.randn(shape) + scales
    layer = normalize_from(inputs.split(7), shape[1], mode)
    mean, std = expected_statistics(inputs, mode)
    torch.testing.assert_close(layer.mean.double(), mean, rtol=ROUNDING, atol=ROUNDING)
    torch.testing.assert_close(layer.std.double(), std, rtol=ROUNDING, atol=0.0)


def test_an_unknown_mode_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="none, centre, scalar, channel, got 'std'"):
        normalize_from([torch.rand(4, 2)], 2, "std")


@pytest.mark.parametrize("constant", [1.0, 0.1])
@pytest.mark.parametrize("size", [3, 1000])
def test_a_constant_channel_is_refused_under_channel_only(constant: float, size: int) -> None:
    inputs = torch.stack((torch.rand(1000), torch.full((1000,), constant)), dim=1)
    with pytest.raises(ValueError, match="drop constant channels"):
        normalize_from(inputs.split(size), 2, "channel")
    assert normalize_from(inputs.split(size), 2, "scalar").norm() > 1


@pytest.mark.parametrize("mode", ["centre", "scalar", "channel"])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_statistics_depend_on_neither_order_nor_batches(mode: str, offset: float) -> None:
    inputs = torch.randn(500, 2, 3, generator=torch.Generator().manual_seed(0)).sort(0).values
    inputs = inputs + offset
    mean, std = expected_statistics(inputs, mode)
    for ordered in (inputs, inputs.flip(0)):
        for size in (1, 7, 500):
            layer = normalize_from(ordered.split(size), 2, mode)
            torch.testing.assert_close(layer.mean.double(), mean, rtol=ROUNDING, atol=ROUNDING)
            torch.testing.assert_close(layer.std.double(), std, rtol=ROUNDING, atol=0.0)


def test_without_normalisation_no_input_is_read() -> None:
    unread = (pytest.fail(f"input {number} was read") for number in range(1))
    layer = normalize_from(unread, 3, "none")
    assert (layer.mean.tolist(), layer.std.tolist()) == ([0.0] * 3, [1.0] * 3)


def test_statistics_of_nothing_or_of_other_channels_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one input, got none"):
        normalize_from([], 3, "centre")
    with pytest.raises(ValueError, match=r"must have 3 channels, got shape \(4, 2\)"):
        normalize_from([torch.rand(4, 2)], 3, "centre")


def test_a_batch_of_nothing_is_unshuffled_too() -> None:
    assert PixelUnshuffle(2)(torch.empty(0, 3, 8, 6)).shape == (0, 12, 4, 3)


@pytest.mark.parametrize("layer", [PixelUnshuffle(2), MaxPool(2), ScaledAveragePool(2), L2Pool(2)])
def test_a_layer_of_maps_takes_maps_alone(layer: FixedLayer) -> None:
    """Of rows, or of one map, it would make several samples; run without the checks of types."""
    program = (
        "import torch\n"
        f"from {type(layer).__module__} import {type(layer).__name__}\n"
        "for shape in ((4, 4), (1, 4, 4), (1, 1, 1, 4, 4)):\n"
        "    try:\n"
        f"        {type(layer).__name__}(2)(torch.zeros(shape))\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("x must be maps (batch, channels, ") for line in lines)


@pytest.mark.parametrize("kind", [PixelUnshuffle, MaxPool, ScaledAveragePool])
def test_the_side_of_a_window_is_a_count(kind: type[FixedLayer]) -> None:
    for size in (0, -1):
        with pytest.raises(ValueError, match="must be >= 1, got"):
            kind(size)


def test_a_map_that_windows_do_not_tile_is_refused() -> None:
    for layer in (PixelUnshuffle(2), MaxPool(2), ScaledAveragePool(2)):
        for batch in (0, 1):
            with pytest.raises(ValueError, match="a multiple of 2 on both sides, got 3 x 4"):
                layer(torch.zeros(batch, 1, 3, 4))


def test_moments_skip_batches_without_inputs() -> None:
    inputs = torch.rand(6, 2)
    whole = normalize_from([inputs], 2, "channel")
    parts = normalize_from([inputs[:0], inputs[:4], inputs[4:4], inputs[4:]], 2, "channel")
    torch.testing.assert_close(parts.std, whole.std)
    with pytest.raises(ValueError, match="batches must hold at least one input, got none"):
        normalize_from([inputs[:0]], 2, "channel")
