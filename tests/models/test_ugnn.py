"""The convolutional network: the paper's listing, and every size it generalises to."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from unitmargin import certify, freeze
from unitmargin.auditing.gradients import unit_gradient_error
from unitmargin.layers.activations import Abs, Activation, MaxMin
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten, MaxPool, PixelUnshuffle
from unitmargin.models import UGNN
from unitmargin.models.classifier import halvings
from unitmargin.models.ugnn import PAPER_DEPTH
from unitmargin.orthogonal import ORTHOGONAL_CONVS, OrthogonalConv2d, OrthogonalLinear

UNIT_GRADIENT = 1e-5
"""The promise of the models in float32."""


def summary(layer: nn.Module) -> tuple[object, ...]:
    if isinstance(layer, OrthogonalConv2d):
        return ("conv", layer.in_channels, layer.out_channels, layer.transform.map_size)
    if isinstance(layer, OrthogonalLinear):
        return ("dense", layer.in_features, layer.out_features)
    return (type(layer).__name__,)


def paper_listing(side: int) -> list[tuple[object, ...]]:
    """The appendix's UGNN for 3 channels, MaxMin, and inputs of ``side`` = m * 32 pixels."""
    expected: list[tuple[object, ...]] = []
    for block in range(5):
        channels, size = 3 * 4**block, side // 2**block
        activation = ("Abs",) if channels % 2 else ("MaxMin",)
        expected += [("conv", channels, channels, (size, size)), activation] * 2
        if block == 4 and size > 2:
            expected.append(("MaxPool",))
        expected.append(("PixelUnshuffle",))
    dense = [("dense", 3072, 1024), ("MaxMin",), ("dense", 1024, 512), ("MaxMin",)]
    return [*expected, ("Flatten",), *dense]


@pytest.mark.parametrize("side", [32, 96])
def test_it_is_the_listing_of_the_paper(side: int) -> None:
    normalize = Normalize(torch.zeros(3), torch.ones(3))
    with torch.device("meta"):  # shapes alone: nothing is drawn or factorised
        model = UGNN((3, side, side), 10, normalize=normalize)
    assert [summary(layer) for layer in model.features] == paper_listing(side)
    assert model.head.raw.shape == (10, 512)


def test_larger_maps_are_pooled_to_two_by_two() -> None:
    model = UGNN((1, 12, 20), 4, depth=2)
    x = torch.rand(2, 1, 12, 20)
    shapes = []
    for layer in model.features:
        x = layer(x)
        if isinstance(layer, MaxPool | PixelUnshuffle | Flatten):
            shapes.append(tuple(x.shape[1:]))
    assert shapes == [(4, 6, 10), (4, 2, 2), (16, 1, 1), (16,)]


@pytest.mark.parametrize(
    ("height", "width", "depth"),
    [(8, 8, 3), (32, 32, 5), (64, 64, 5), (12, 20, 2), (28, 28, 2), (2, 6, 1), (7, 8, 0)],
)
def test_the_halvings(height: int, width: int, depth: int) -> None:
    assert halvings(height, width, PAPER_DEPTH) == depth


def test_odd_channel_counts_fall_back_to_abs() -> None:
    layers = [x for x in UGNN((3, 4, 4), 4, depth=2).features if isinstance(x, Activation)]
    assert [type(x) for x in layers[:4]] == [Abs, Abs, MaxMin, MaxMin]


@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2),
    st.sampled_from(["cayley", "manifold"]), st.integers(0, 99),
)  # fmt: skip
def test_unit_gradients_for_any_shape(
    channels: int, rows: int, columns: int, depth: int, conv: str, seed: int
) -> None:
    torch.manual_seed(seed)
    shape = (channels, rows * 2**depth, columns * 2**depth)
    model = UGNN(shape, 3, depth=depth, conv=conv, hidden=(4,))
    assert unit_gradient_error(model, torch.randn(2, *shape)) <= UNIT_GRADIENT


def test_hidden_widths_never_exceed_the_features() -> None:
    widths = [
        layer.out_features
        for layer in UGNN((1, 8, 8), 10).features
        if isinstance(layer, OrthogonalLinear)
    ]
    assert widths == [64, 64]


@pytest.mark.parametrize(
    ("shape", "depth", "message"),
    [
        ((1, 7, 8), None, "in_shape must have even sides, got 7 x 8; resize the images, or"),
        ((1, 8, 12), 3, "got 8 x 12 and depth 3"),
        ((1, 8, 8), 0, "depth must be >= 1, got 0; leave it out"),
        ((0, 8, 8), None, "in_shape must hold positive lengths, got \\(0, 8, 8\\)"),
        ((1, 8, -8), None, "in_shape must hold positive lengths"),
        ((64,), None, "in_shape must be .* got \\(64,\\); .* dense_ugnn"),
    ],
)
def test_other_sizes_are_refused(shape: tuple[int, ...], depth: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        UGNN(shape, 3, depth=depth)


def test_a_normalisation_has_a_mean_for_each_channel() -> None:
    one = Normalize(torch.zeros(1), torch.ones(1))
    with pytest.raises(ValueError, match="normalize must have a mean .* each of the 3 channels"):
        UGNN((3, 8, 8), 10, normalize=one)
    assert UGNN((1, 8, 8), 10, normalize=one)(torch.rand(2, 1, 8, 8)).shape == (2, 10)


def test_another_map_at_run_time_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(batch, 1, 8, 8\), got \(1, 1, 16, 16\); resize it"):
        UGNN((1, 8, 8), 3)(torch.rand(1, 1, 16, 16))


@pytest.mark.parametrize("conv", ORTHOGONAL_CONVS)
def test_a_kernel_has_a_tap(conv: str) -> None:
    with pytest.raises(ValueError, match=r"kernel_size .* got 0; use [13]"):
        UGNN((1, 8, 8), 3, conv=conv, kernel_size=0)


def test_a_share_of_absolute_values_keeps_unit_gradients_and_is_deployed() -> None:
    model = UGNN((4, 4, 4), 3, activation="partial_abs4", depth=1, hidden=(8,)).eval()
    kinds = [type(layer).__name__ for _, layer in model.named_layers()]
    assert kinds.count("PartialAbs") == 3
    x = torch.randn(3, 4, 4, 4)
    assert unit_gradient_error(model, x) <= UNIT_GRADIENT
    frozen = freeze(model)
    assert [layer.kind for layer in frozen.layers].count("partial_abs") == 3
    assert bool((certify(frozen, x, domain="any").radius >= 0).all())
