"""The fully connected network."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.auditing.gradients import unit_gradient_error
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten
from unitmargin.models import DenseUGNN
from unitmargin.orthogonal import ORTHOGONAL_LINEARS

UNIT_GRADIENT = 1e-5
"""The promise of the models in float32."""


def kinds(model: DenseUGNN) -> list[str]:
    return [type(layer).__name__ for layer in model.features]


def test_each_dense_layer_is_followed_by_its_activation() -> None:
    model = DenseUGNN((8,), 3, hidden=(8, 5, 4), activation="oplu", linear="bjorck")
    dense = ["BjorckLinear", "OPLU", "BjorckLinear", "Abs", "BjorckLinear", "OPLU"]
    assert kinds(model) == ["Flatten", *dense]
    assert model.head.raw.shape == (3, 4)


def test_by_default_two_layers_as_wide_as_the_input() -> None:
    shapes = [tuple(p.shape) for p in DenseUGNN((2, 3), 3).features.parameters() if p.ndim == 2]
    assert shapes == [(6, 6), (6, 6)]


def test_without_hidden_layers_it_is_affine() -> None:
    model = DenseUGNN((4,), 3, hidden=())
    assert kinds(model) == ["Flatten"]
    assert isinstance(model.features[0], Flatten)
    x, y = torch.rand(2, 4), torch.rand(2, 4)
    assert (model(x) + model(y) - 2 * model((x + y) / 2)).abs().max() <= 1e-6


@given(
    st.integers(2, 12), st.integers(2, 5),
    st.sampled_from(["abs", "maxmin", "groupsort3", "partial_abs3"]),
    st.sampled_from(["bjorck", "cholesky", "manifold"]), st.integers(0, 99),
)  # fmt: skip
def test_unit_gradients_for_any_shape(
    features: int, classes: int, activation: str, linear: str, seed: int
) -> None:
    torch.manual_seed(seed)
    width = max(features, classes)
    model = DenseUGNN((width,), classes, activation=activation, linear=linear)
    assert unit_gradient_error(model, torch.randn(4, width)) <= UNIT_GRADIENT


def test_growing_widths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"J J\^T = I.*got 4 -> 6"):
        DenseUGNN((4,), 2, hidden=(4, 6))


@pytest.mark.parametrize("linear", ORTHOGONAL_LINEARS)
@pytest.mark.parametrize("width", [0, -1])
def test_a_layer_has_an_output(linear: str, width: int) -> None:
    with pytest.raises(ValueError, match=f"out_features must be >= 1, got {width}"):
        ORTHOGONAL_LINEARS[linear](4, width)
    with pytest.raises(ValueError, match=f"a width of hidden must be >= 1, got {width}"):
        DenseUGNN((4,), 2, linear=linear, hidden=(width,))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_an_input_has_a_number(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="in_shape must hold positive lengths"):
        DenseUGNN(shape, 2)


def test_the_head_needs_enough_features() -> None:
    with pytest.raises(ValueError, match="at least 9 features for 10 classes, got 8"):
        DenseUGNN((16,), 10, hidden=(8,))


def test_normalisation_comes_first() -> None:
    normalize = Normalize(torch.tensor([0.5, 0.1]), torch.tensor([2.0, 4.0]))
    torch.manual_seed(1)
    model = DenseUGNN((2,), 2, normalize=normalize)
    torch.manual_seed(1)
    raw = DenseUGNN((2,), 2)
    x = torch.rand(5, 2)
    assert torch.equal(model(x), raw((x - normalize.mean) / normalize.std))
