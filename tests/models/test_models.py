"""The registry of models."""

import pytest
import torch
from torch import nn

from unitmargin.models import MODELS, DenseUGNN, build_model
from unitmargin.orthogonal.cayley import CayleyConv2d
from unitmargin.orthogonal.skew import SkewConv2d


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
