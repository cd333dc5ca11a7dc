"""What all classifiers share: input normalisation, features, head."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.foundation.choice import choose
from unitmargin.heads import HEADS, Head
from unitmargin.layers.activations import build_activation
from unitmargin.layers.contract import Layer, Network
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.promises import Promise
from unitmargin.layers.rearrangement import Flatten
from unitmargin.orthogonal import (
    ORTHOGONAL_CONVS,
    ORTHOGONAL_LINEARS,
    OrthogonalConv2d,
    OrthogonalLinear,
)


class Classifier(Network):
    """``head(features(normalize(x)))``; every part answers the contract of a layer.

    A subclass makes the layers, the last of which has ``width`` outputs, and names the head.
    Shapes: ``(batch, *in_shape)`` to logits ``(batch, n_classes)``.
    """

    def __init__(
        self,
        in_shape: Sequence[int],
        n_classes: int,
        layers: Sequence[Layer],
        width: int,
        head: str,
        normalize: Normalize | None,
    ) -> None:
        super().__init__()
        self.in_shape, self.n_classes = tuple(in_shape), n_classes
        channels = in_shape[0]
        self.normalize = normalize or Normalize(torch.zeros(channels), torch.ones(channels))
        self.features = nn.Sequential(*layers)
        self.head = build_head(head, width, n_classes)

    def normalised(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        output: Tensor = self.normalize(x)
        return output

    def logits(self, normalised: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch classes"]:
        output: Tensor = self.head(self.features(normalised))
        return output

    def named_layers(self) -> list[tuple[str, Layer]]:
        return [("normalize", self.normalize), *_walk("features", self.features)]

    @property
    def head_promise(self) -> Promise:
        return self.head.promise

    def head_weight(self) -> Float[Tensor, "classes features"]:
        with torch.no_grad():
            return self.head.weight()


def _walk(name: str, module: nn.Module) -> list[tuple[str, Layer]]:
    """The layers below a module, in order.

    Raises:
        TypeError: a module that is no layer, which would be evaluated and not deployed.
    """
    if isinstance(module, Layer):
        return [(name, module)]
    if not isinstance(module, nn.Sequential):
        raise TypeError(
            f"{name} must be a layer that answers unitmargin.layers.contract.Layer, got "
            f"{type(module).__name__}; write it as one, or leave it out"
        )
    children = module.named_children()
    return [entry for child, inner in children for entry in _walk(f"{name}.{child}", inner)]


def build_head(name: str, features: int, n_classes: int) -> Head:
    """A registered head."""
    return choose("head", name, HEADS)(features, n_classes)


def dense_layers(
    inputs: int, hidden: Sequence[int], activation: str, linear: str
) -> tuple[list[Layer], int]:
    """A flattening, orthogonal dense layers of the given widths with the activation behind each,
    and the last width."""
    layers: list[Layer] = [Flatten()]
    for width in hidden:
        layers += [build_linear(linear, inputs, width), build_activation(activation, width)]
        inputs = width
    return layers, inputs


def build_linear(name: str, inputs: int, outputs: int) -> OrthogonalLinear:
    """A registered orthogonal dense layer."""
    return choose("linear", name, ORTHOGONAL_LINEARS)(inputs, outputs)


def build_conv(
    name: str,
    channels: int,
    kernel_size: int,
    map_size: tuple[int, int],
    out_channels: int | None = None,
) -> OrthogonalConv2d:
    """A registered orthogonal convolution; it keeps the number of channels by default."""
    outputs = channels if out_channels is None else out_channels
    return choose("conv", name, ORTHOGONAL_CONVS)(channels, outputs, kernel_size, map_size)
