"""The registry of models."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from unitmargin.layers.normalize import Normalize
from unitmargin.models import (
    MODELS,
    UGNN,
    Classifier,
    DearEvaluationWarning,
    DenseUGNN,
    build_model,
    classifier,
    fixed_network,
    freeze,
)
from unitmargin.orthogonal import ORTHOGONAL_CONVS
from unitmargin.orthogonal.cayley import CayleyConv2d
from unitmargin.orthogonal.skew import SkewConv2d
from unitmargin.training.train import train


def test_every_model_is_built_by_name() -> None:
    for name in MODELS:
        model = build_model(name, in_shape=[1, 16, 16], n_classes=3)
        assert (model.in_shape, model.n_classes) == ((1, 16, 16), 3)


def layers_of(name: str, kind: type[nn.Module]) -> list[nn.Module]:
    layers = build_model(name, (1, 8, 8), 3).named_layers()
    return [layer for _, layer in layers if isinstance(layer, kind)]


def test_variants_differ_by_their_settings() -> None:
    names = ("lip_convnet5", "lip_convnet10", "lip_convnet15", "lip_convnet20")
    assert [len(layers_of(name, SkewConv2d)) for name in names] == [3, 6, 9, 12]
    kernels = [layer.raw.shape[-1] for layer in layers_of("kw_large", CayleyConv2d)]
    assert kernels == [3, 1, 3, 1]


def test_an_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="model must be one of ugnn, dense_ugnn.*got 'resnet'"):
        build_model("resnet", (1, 4, 4), 3)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(ValueError, match="model dense_ugnn does not take.*colour"):
        build_model("dense_ugnn", (2,), 2, colour="red")


@pytest.mark.parametrize(
    ("family", "model"), [("linear", "dense_ugnn"), ("conv", "ugnn"), ("head", "ugnn")]
)
def test_unknown_parts_list_the_known_ones(family: str, model: str) -> None:
    with pytest.raises(ValueError, match=f"{family} must be one of .*, got 'dense'"):
        build_model(model, (1, 4, 4), 2, **{family: "dense"})


def test_layers_are_named_as_in_the_state_dictionary() -> None:
    model = build_model("ugnn", (1, 4, 4), 3)
    names = [name for name, _ in model.named_layers()]
    assert names[0] == "normalize"
    assert len(set(names)) == len(names)
    for key in model.state_dict().keys() - {"domain"}:
        assert key.rsplit(".", 1)[0] in (*names, "head")


def test_layers_in_order_are_the_network() -> None:
    model = DenseUGNN((6,), 3)
    x = torch.rand(4, 6)
    output = x
    for _, layer in model.named_layers():
        output = layer(output)
    assert torch.equal(model.head(output), model(x))


@pytest.fixture
def every_weight_is_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier, "DEAR", 0.0)


@pytest.mark.usefixtures("every_weight_is_dear")
def test_evaluation_with_dear_weights_says_to_store_them() -> None:
    model, x = DenseUGNN((6,), 3, linear="bjorck").eval(), torch.rand(4, 6)
    for quiet in (torch.no_grad(), torch.inference_mode()):
        with quiet, pytest.warns(DearEvaluationWarning, match=r"unitmargin\.freeze\(model\)"):
            model(x)


@pytest.mark.usefixtures("every_weight_is_dear")
def test_nothing_warns_where_nothing_is_to_be_stored(recwarn: pytest.WarningsRecorder) -> None:
    model, x = DenseUGNN((6,), 3, linear="bjorck"), torch.rand(4, 6)
    model.eval()(x)  # with gradients: an attack on the weights as they are
    with torch.no_grad():
        model.train()(x)
        fixed_network(model.eval())(x)
        freeze(model)(x)
        DenseUGNN((6,), 3, linear="manifold", head="lln").eval()(x)
    train(model, (x, torch.arange(4) % 3), (x, torch.arange(4) % 3), epochs=1, quiet=True)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("make", "dear"),
    [
        (lambda: DenseUGNN((1024,), 10, linear="bjorck", hidden=(512,)), True),
        (lambda: DenseUGNN((64,), 10, linear="bjorck"), False),
        (lambda: DenseUGNN((2048,), 10, linear="manifold", hidden=(1024,)), False),
        (lambda: DenseUGNN((2048,), 1000, linear="manifold", hidden=(2048,)), True),
        (lambda: DenseUGNN((2048,), 1000, linear="manifold", head="bounded", hidden=()), True),
        (lambda: DenseUGNN((2048,), 1000, linear="manifold", head="manifold", hidden=()), True),
        (lambda: DenseUGNN((2048,), 100, linear="manifold", hidden=()), False),
        (lambda: build_model("lip_convnet5", (3, 32, 32), 10), True),
        (lambda: build_model("large_convnet", (3, 16, 16), 10), True),
    ],
)
def test_dear_are_wide_layers_that_are_computed(make: Callable[[], Classifier], dear: bool) -> None:
    with torch.device("meta"):
        assert classifier.is_dear(make()) == dear


def test_models_of_another_default_type_are_of_that_type() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        for conv in ORTHOGONAL_CONVS:
            model = build_model("ugnn", (1, 8, 8), 3, conv=conv).eval()
            assert {parameter.dtype for parameter in model.parameters()} == {torch.float64}
            x = torch.rand(2, 1, 8, 8)
            logits = model(x)
            assert logits.dtype == torch.float64
            assert (logits - model.double()(x)).abs().max() <= 1e-12
    finally:
        torch.set_default_dtype(torch.float32)


def test_statistics_are_a_copy_in_the_type_of_the_model() -> None:
    mean, std = np.full(3, 0.5), np.full(3, 0.25)
    own = Normalize(torch.from_numpy(mean), torch.from_numpy(std))
    model = UGNN((3, 4, 4), 3, depth=1, normalize=own)
    x = torch.rand(2, 3, 4, 4)
    before = model(x)
    own.mean += 1.0
    mean += 1.0
    assert torch.equal(model(x), before)
    one = torch.tensor([0.5]).expand(3)
    shared = UGNN((3, 4, 4), 3, depth=1, normalize=Normalize(one, one))
    shared.load_state_dict(model.state_dict())
    assert torch.equal(shared(x), before)


def test_every_parameter_is_precise() -> None:
    model = DenseUGNN((4,), 3)
    model.head.half()
    with pytest.raises(ValueError, match="parameters must be float32 or float64, got torch.float1"):
        model(torch.rand(2, 4))


@pytest.mark.parametrize(
    "make",
    [lambda model: model, fixed_network, freeze],
    ids=["trained", "fixed", "frozen"],
)
def test_inputs_of_another_shape_are_refused(make: Callable[[Classifier], nn.Module]) -> None:
    network = make(UGNN((1, 8, 8), 3))
    with pytest.raises(
        ValueError, match=r"\(batch, 1, 8, 8\), got \(1, 8, 8\); add the batch axis"
    ):
        network(torch.rand(1, 8, 8))
    flat = make(DenseUGNN((4, 4, 4), 2, hidden=(8,)))
    with pytest.raises(ValueError, match=r"\(batch, 4, 4, 4\), got \(5, 4, 16\); resize it"):
        flat(torch.rand(5, 4, 16))
    with pytest.raises(ValueError, match=r"\(batch, 4, 4, 4\), got \(64,\); resize it"):
        flat(torch.rand(64))


@pytest.mark.parametrize("name", ["ugnn", "mixing_ugnn", "lip_convnet5", "dense_ugnn"])
def test_the_advice_for_more_features_is_for_all_models(name: str) -> None:
    with pytest.raises(ValueError, match="at least 999 features for 1000 .* end wider: hidden"):
        build_model(name, (1, 8, 8), 1000, head="simplex")
