"""Trainable mixing layers: on the manifold, near the identity at the start, exact when frozen."""

import copy

import pytest
import torch
from slicing import ARRANGED

from unitmargin.frozen.mixing import MIXINGS
from unitmargin.layers.slices import Arrangement, Folds, Groups, Shifts, Windows
from unitmargin.orthogonal.mixing import ABSOLUTE, ANGLE, OrthogonalMixing
from unitmargin.training.optimizers import build_optimizers

EXACT, SINGLE = 1e-12, 2e-6
"""max |W W^T - I| in float64 behind the polish, and of stored float32 weights."""

every = pytest.mark.parametrize(("arrangement", "channels"), ARRANGED.values(), ids=ARRANGED)


def error(weight: torch.Tensor) -> float:
    wide = weight.detach().double()
    return float((wide @ wide.mT - torch.eye(wide.shape[-1])).abs().max())


@every
def test_weights_start_on_the_manifold_and_are_frozen_to_it(
    arrangement: Arrangement, channels: int
) -> None:
    layer = OrthogonalMixing(arrangement, channels)
    assert layer.raw.shape[:2] == arrangement.stack(channels)
    assert error(layer.raw) <= SINGLE
    frozen = layer.freeze()
    assert type(frozen) is MIXINGS[type(arrangement)]
    assert frozen.weight.dtype == frozen.bias.dtype == torch.float64
    assert error(frozen.weight) <= EXACT
    assert list(layer.manifold_parameters().real) == [layer.raw]


def test_weights_start_near_the_identity() -> None:
    """Their angles have the root mean square that is stated."""
    layer = OrthogonalMixing(Groups((4, 4), 8), 8)
    angles = torch.linalg.eigvals(layer.raw.detach().double()).angle()
    assert float(angles.square().mean().sqrt()) == pytest.approx(ANGLE, rel=0.1)
    assert not layer.bias.any()
    assert layer.absolute == round(ABSOLUTE * 128)


@every
def test_a_fixed_layer_computes_the_same(arrangement: Arrangement, channels: int) -> None:
    layer = OrthogonalMixing(arrangement, channels)
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(2, channels, *arrangement.map_size)
    with torch.no_grad():
        assert torch.equal(layer.fix()(x), layer(x))
        assert (layer.freeze()(x.double()) - layer(x)).abs().max() <= 1e-5


def test_without_a_bias_none_is_trained() -> None:
    layer = OrthogonalMixing(Windows((2, 2), 2), 2, bias=False)
    layer(torch.randn(3, 2, 2, 2)).sum().backward()
    assert layer.bias.grad is None
    assert not layer.freeze().bias.any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_under_autocast_are_short_and_weights_are_not(dtype: torch.dtype) -> None:
    layer, x = OrthogonalMixing(Shifts((3, 3)), 9), torch.randn(4, 9, 3, 3)
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
    layer = OrthogonalMixing(Folds((4, 4), 2, 1), 3).double()
    assert layer(torch.randn(2, 3, 4, 4)).dtype == torch.float64
    assert layer(torch.randn(2, 3, 4, 4).bfloat16()).dtype == torch.float64


def test_steps_keep_to_the_manifold() -> None:
    torch.manual_seed(0)
    layer, x = OrthogonalMixing(Windows((4, 4), 2, 1), 3), torch.randn(8, 3, 4, 4)
    goal = OrthogonalMixing(Windows((4, 4), 2, 1), 3)(x).detach()
    optimizers = build_optimizers(layer, 1e-2, 1e-1)
    losses = []
    for _ in range(20):
        loss = (layer(x) - goal).square().mean()
        losses.append(float(loss.detach()))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    assert losses[-1] < 0.5 * losses[0]
    assert error(layer.raw) <= 1e-5


def test_a_copy_and_a_state_dictionary_are_the_layer() -> None:
    layer, x = OrthogonalMixing(Groups((2, 3), 2), 4), torch.randn(2, 4, 2, 3)
    other = OrthogonalMixing(Groups((2, 3), 2), 4)
    assert not torch.equal(other(x), layer(x))
    other.load_state_dict(layer.state_dict())
    for same in (other, copy.deepcopy(layer)):
        assert torch.equal(same(x), layer(x))


def test_shapes_alone_are_built_without_numbers() -> None:
    with torch.device("meta"):
        layer = OrthogonalMixing(Groups((2, 3), 2), 4)
    assert layer.raw.is_meta
    assert layer.raw.shape == (2, 12, 12)


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(ValueError, match="groups of 3 in 4 channels"):
        OrthogonalMixing(Groups((2, 2), 3), 4)
    with pytest.raises(
        ValueError, match="absolute must be at most the 8 entries of a slice, got 9"
    ):
        OrthogonalMixing(Windows((2, 2), 2), 2, absolute=9)
    with pytest.raises(ValueError, match="absolute must be >= 0, got -1"):
        OrthogonalMixing(Windows((2, 2), 2), 2, absolute=-1)


def test_a_layer_says_what_it_is() -> None:
    text = repr(OrthogonalMixing(Windows((4, 4), 2, 1), 3))
    assert text == "OrthogonalMixing(Windows(map_size=(4, 4), size=2, shift=1), 1 x 12, absolute=3)"


def test_a_layer_without_biases_has_none_to_train() -> None:
    layer = OrthogonalMixing(Windows((4, 4), 2), channels=3, bias=False)
    layer.requires_grad_(False).requires_grad_(True)
    assert [name for name, _ in layer.named_parameters()] == ["raw"]
    assert sorted(layer.state_dict()) == ["bias", "raw"]
