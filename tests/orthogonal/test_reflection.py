"""Trainable reflections: on the manifold, near the identity at the start, exact when frozen."""

import copy

import pytest
import torch
from jacobians import gnp_error
from slicing import ARRANGED

from unitmargin.frozen.reflection import REFLECTIONS
from unitmargin.layers.contract import Layer
from unitmargin.layers.rearrangement import Flatten
from unitmargin.layers.slices import Arrangement, Folds, Groups, Positions, Shifts, Windows
from unitmargin.models import Classifier
from unitmargin.models.freezing import freeze
from unitmargin.orthogonal.reflection import OrthogonalReflection
from unitmargin.training.optimizers import build_optimizers

EXACT, SINGLE = 1e-12, 2e-6
"""max |W W^T - I| in float64 behind the polish, and of stored float32 weights."""

every = pytest.mark.parametrize(("arrangement", "channels"), ARRANGED.values(), ids=ARRANGED)


def error(weight: torch.Tensor) -> float:
    wide = weight.detach().double()
    return float((wide @ wide.mT - torch.eye(wide.shape[1])).abs().max())


@every
def test_rows_start_on_the_manifold_and_are_frozen_to_it(
    arrangement: Arrangement, channels: int
) -> None:
    layer = OrthogonalReflection(arrangement, channels)
    count, side = arrangement.stack(channels)
    assert layer.raw.shape == (count, max(1, round(side / 4)), side)
    assert error(layer.raw) <= SINGLE
    frozen = layer.freeze()
    assert type(frozen) is REFLECTIONS[type(arrangement)]
    assert frozen.weight.dtype == frozen.bias.dtype == torch.float64
    assert error(frozen.weight) <= EXACT
    assert list(layer.manifold_parameters().real) == [layer.raw]
    assert gnp_error(frozen, torch.randn(channels, *arrangement.map_size).double()) <= EXACT


def test_an_eighth_of_a_slice_turns_at_the_start() -> None:
    """Half of a quarter: its output and its input have a cosine of 1 - 2 / 8."""
    layer = OrthogonalReflection(Positions((2, 2)), 256)
    x = torch.randn(200, 256, 2, 2)
    cosine = torch.nn.functional.cosine_similarity(layer(x).flatten(1), x.flatten(1)).mean()
    assert float(cosine.detach()) == pytest.approx(0.75, abs=0.01)
    assert not layer.bias.any()


@every
def test_a_fixed_layer_computes_the_same(arrangement: Arrangement, channels: int) -> None:
    layer = OrthogonalReflection(arrangement, channels)
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(2, channels, *arrangement.map_size)
    with torch.no_grad():
        assert torch.equal(layer.fix()(x), layer(x))
        assert (layer.freeze()(x.double()) - layer(x)).abs().max() <= 1e-5
    assert tuple(layer.gains()) == tuple(layer.fix().gains())


def test_without_a_bias_none_is_trained() -> None:
    layer = OrthogonalReflection(Windows((2, 2), 2), 2, bias=False)
    layer(torch.randn(3, 2, 2, 2)).sum().backward()
    assert layer.bias.grad is None
    assert not layer.freeze().bias.any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_under_autocast_are_short_and_weights_are_not(dtype: torch.dtype) -> None:
    layer, x = OrthogonalReflection(Shifts((3, 3)), 9), torch.randn(4, 9, 3, 3)
    expected = layer(x)
    with torch.autocast("cpu", dtype):
        output = layer(x)
    assert output.dtype == dtype
    assert 0.0 < (output - expected).abs().max() <= 0.1
    output.float().square().sum().backward()
    assert layer.raw.grad is not None
    assert layer.raw.grad.dtype == layer.raw.dtype == torch.float32
    short, layer.raw.grad = layer.raw.grad, None
    layer(x).square().sum().backward()
    assert (short - layer.raw.grad).abs().max() <= 0.05 * layer.raw.grad.abs().max()


def test_a_layer_in_float64_is_evaluated_so() -> None:
    layer = OrthogonalReflection(Folds((4, 4), 2, 1), 3).double()
    assert layer(torch.randn(2, 3, 4, 4)).dtype == torch.float64


def test_steps_keep_to_the_manifold() -> None:
    torch.manual_seed(0)
    layer, x = OrthogonalReflection(Windows((4, 4), 2, 1), 3), torch.randn(8, 3, 4, 4)
    goal = OrthogonalReflection(Windows((4, 4), 2, 1), 3)(x).detach()
    optimizers = build_optimizers(layer, 1e-2, 1e-1)
    losses = []
    for _ in range(30):
        loss = (layer(x) - goal).square().mean()
        losses.append(float(loss.detach()))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    assert losses[-1] < 0.5 * losses[0]
    assert error(layer.raw) <= 1e-5


def test_a_network_of_reflections_is_a_signed_distance_classifier() -> None:
    layers: list[Layer] = [
        OrthogonalReflection(Folds((4, 4), 2, 1), 2),
        OrthogonalReflection(Groups((2, 2), 4), 8),
        Flatten(),
    ]
    model = Classifier((2, 4, 4), 3, layers, 32, "simplex", None).eval()
    assert model.signed_distance
    frozen, x = freeze(model), torch.randn(5, 2, 4, 4)
    assert frozen.facts["polishing_error"] <= SINGLE
    assert (frozen(x) - frozen(x)[:, :1] - (model(x) - model(x)[:, :1])).abs().max() <= 1e-5


def test_a_copy_and_a_state_dictionary_are_the_layer() -> None:
    layer, x = OrthogonalReflection(Groups((2, 3), 2), 4), torch.randn(2, 4, 2, 3)
    other = OrthogonalReflection(Groups((2, 3), 2), 4)
    assert not torch.equal(other(x), layer(x))
    other.load_state_dict(layer.state_dict())
    for same in (other, copy.deepcopy(layer)):
        assert torch.equal(same(x), layer(x))


def test_shapes_alone_are_built_without_numbers() -> None:
    with torch.device("meta"):
        layer = OrthogonalReflection(Groups((2, 3), 2), 4)
    assert layer.raw.is_meta
    assert layer.raw.shape == (2, 3, 12)


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(ValueError, match="groups of 3 in 4 channels"):
        OrthogonalReflection(Groups((2, 2), 3), 4)
    with pytest.raises(ValueError, match="rows must be at most the 8 entries of a slice, got 9"):
        OrthogonalReflection(Windows((2, 2), 2), 2, rows=9)
    with pytest.raises(ValueError, match="rows must be >= 1, got 0; leave it out"):
        OrthogonalReflection(Windows((2, 2), 2), 2, rows=0)


def test_a_layer_says_what_it_is() -> None:
    text = repr(OrthogonalReflection(Windows((4, 4), 2, 1), 3))
    assert text == "OrthogonalReflection(Windows(map_size=(4, 4), size=2, shift=1), 1 x 3 of 12)"
