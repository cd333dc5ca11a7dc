"""The network of mixing layers: unit gradients for every map, and what is deployed."""

import pytest
import torch

from unitmargin.auditing.audit import audit
from unitmargin.auditing.gradients import unit_gradient_error
from unitmargin.frozen.profiles import PROFILES
from unitmargin.models import MixingUGNN, build_model, freeze
from unitmargin.orthogonal.mixing import OrthogonalMixing

SHAPES = [(3, 32, 32), (1, 8, 8), (3, 7, 5), (2, 1, 9), (16, 1, 1), (1, 28, 28)]


@pytest.mark.parametrize("in_shape", SHAPES)
def test_gradients_have_norm_one_on_every_map(in_shape: tuple[int, int, int]) -> None:
    classes = 10 if in_shape != (16, 1, 1) else 3
    model = MixingUGNN(in_shape, classes)
    assert unit_gradient_error(model, torch.rand(3, *in_shape)) < 1e-5
    assert model.signed_distance


@pytest.mark.parametrize("absolute", [-1.0, float("nan"), float("inf")])
def test_a_share_that_is_none_is_refused(absolute: float) -> None:
    with pytest.raises(ValueError, match="absolute must be finite and >= 0, got"):
        MixingUGNN((1, 8, 8), 4, absolute=absolute)


def test_every_word_of_a_plan_is_a_layer() -> None:
    plan = ["fold 2", "window 2", "shift", "position", "group 4"]
    model = build_model("mixing_ugnn", (3, 8, 8), 4, plan=plan, absolute=0.5)
    layers = [layer for layer in model.features if isinstance(layer, OrthogonalMixing)]
    assert [tuple(layer.raw.shape) for layer in layers] == [
        (1, 12, 12), (1, 48, 48), (1, 12, 12), (16, 12, 12), (3, 64, 64),
    ]  # fmt: skip
    assert [layer.absolute for layer in layers] == [6, 24, 6, 6, 32]
    assert unit_gradient_error(model, torch.rand(3, 3, 8, 8)) < 1e-5


def test_reflections_and_pools_keep_unit_gradients() -> None:
    plan = ["fold 2", "reflect window 2", "window 2", "pool 2", "reflect group 4"]
    model = MixingUGNN((3, 8, 8), 4, plan=plan)
    assert unit_gradient_error(model, torch.rand(3, 3, 8, 8)) < 1e-5
    assert model.signed_distance


def test_frozen_it_is_the_same_function_and_exact() -> None:
    model = MixingUGNN((3, 16, 16), 5).eval()
    for layer in model.features:
        if isinstance(layer, OrthogonalMixing):
            torch.nn.init.normal_(layer.bias, std=0.1)
    frozen = freeze(model)
    x = torch.rand(4, 3, 16, 16)
    with torch.no_grad():
        logits = model(x)
    margins = logits - logits[:, :1]
    found = frozen.network(x)
    torch.testing.assert_close(found - found[:, :1], margins, rtol=0, atol=1e-5)
    assert audit(frozen.in_float64(), x.double()).orthogonality_error < 1e-7


def test_a_wide_network_is_lipschitz_and_no_signed_distance_classifier() -> None:
    model = MixingUGNN((1, 8, 8), 4, plan=["fold 2", "widen 3", "window 2", "group 4"])
    assert not model.signed_distance
    frozen = freeze(model)
    x = torch.rand(2, 1, 8, 8)
    assert float(frozen.proof(PROFILES["float64"]).bounds.lipschitz.max()) == pytest.approx(
        1.0, abs=1e-6
    )
    differences = frozen(x)[:, :, None] - frozen(x)[:, None, :]
    moved = (differences[0] - differences[1]).abs().max()
    assert float(moved) <= float((x[0] - x[1]).norm()) * (1 + 1e-6)


def test_an_input_that_is_no_image_is_refused() -> None:
    with pytest.raises(ValueError, match="for vectors use the model dense_ugnn"):
        MixingUGNN((12,), 3)


def test_a_share_is_at_most_one() -> None:
    with pytest.raises(ValueError, match="absolute must be at most 1, got 1.5"):
        MixingUGNN((1, 4, 4), 3, absolute=1.5)
