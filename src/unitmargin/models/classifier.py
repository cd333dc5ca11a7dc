"""What all classifiers share: input normalisation, features, head, and how to freeze them."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.frozen import FrozenNetwork
from unitmargin.heads import HEADS, Head
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.normalize import Normalize
from unitmargin.orthogonal import ORTHOGONAL_CONVS, ORTHOGONAL_LINEARS

Choice = TypeVar("Choice")


class Classifier(nn.Module):
    """``head(features(normalize(x)))``; every part is fixed or knows how to freeze itself.

    Shapes: ``(batch, *in_shape)`` to logits ``(batch, n_classes)``.
    """

    def __init__(
        self,
        in_shape: tuple[int, ...],
        n_classes: int,
        features: nn.Sequential,
        head: Head,
        normalize: Normalize | None,
    ) -> None:
        super().__init__()
        self.in_shape, self.n_classes = tuple(in_shape), n_classes
        channels = in_shape[0]
        self.normalize = normalize or Normalize(torch.zeros(channels), torch.ones(channels))
        self.features = features
        self.head = head

    def forward(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch classes"]:
        logits: Tensor = self.head(self.features(self.normalize(x)))
        return logits

    def layers(self) -> Iterator[tuple[str, nn.Module]]:
        """All layers from input to logits, each with its name in the state dictionary."""
        yield "normalize", self.normalize
        yield from walk("features", self.features)
        yield "head", self.head


def walk(name: str, module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The layers below a module, in order; what knows how to freeze itself is one layer."""
    if isinstance(module, FixedLayer) or hasattr(module, "freeze"):
        yield name, module
        return
    for child_name, child in module.named_children():
        yield from walk(f"{name}.{child_name}", child)


def fixed_network(model: Classifier) -> FrozenNetwork:
    """The network as it is evaluated, weights made once and stored in the parameters' dtype.

    Unlike :func:`unitmargin.models.freezing.freeze` nothing is polished: deviations are those of
    the
    trained weights.
    """
    with torch.no_grad():
        return FrozenNetwork([fixed_layer(layer) for _, layer in model.layers()], model.in_shape)


def fixed_layer(layer: nn.Module) -> FixedLayer:
    """The layer as it is evaluated, its weight stored: a fixed layer is its own."""
    return _own_copy(layer if isinstance(layer, FixedLayer) else layer.fix())  # type: ignore[operator]


def frozen_layer(layer: nn.Module) -> FixedLayer:
    """The deployed form of a layer: a fixed layer is its own."""
    return _own_copy(layer if isinstance(layer, FixedLayer) else layer.freeze())  # type: ignore[operator]


def _own_copy(layer: Any) -> FixedLayer:
    assert isinstance(layer, FixedLayer)  # the contract of every trainable layer
    return copy.deepcopy(layer)  # a layer may hand out its own parameters


def choose(family: str, name: str, registry: Mapping[str, Choice]) -> Choice:
    """The registry's entry of that name, or an error that lists all of them."""
    if name not in registry:
        raise ValueError(f"{family} must be one of {', '.join(registry)}, got {name!r}; choose one")
    return registry[name]


def build_head(name: str, features: int, n_classes: int) -> Head:
    """A registered head."""
    head: Head = choose("head", name, HEADS)(features, n_classes)
    return head


def build_linear(name: str, inputs: int, outputs: int) -> nn.Module:
    """A registered orthogonal dense layer."""
    layer: nn.Module = choose("linear", name, ORTHOGONAL_LINEARS)(inputs, outputs)
    return layer


def build_conv(
    name: str,
    channels: int,
    kernel_size: int,
    map_size: tuple[int, int],
    out_channels: int | None = None,
) -> nn.Module:
    """A registered orthogonal convolution; it keeps the number of channels by default."""
    kind = choose("conv", name, ORTHOGONAL_CONVS)
    outputs = channels if out_channels is None else out_channels
    layer: nn.Module = kind(channels, outputs, kernel_size, map_size)
    return layer
