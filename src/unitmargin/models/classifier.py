"""What all classifiers share: input normalisation, features, head, and how to freeze them."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.fixed import FixedLayer, Normalize
from unitmargin.heads import HEADS, UPDHead
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
        head: UPDHead,
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
        for name, layer in self.features.named_modules(prefix="features"):
            if isinstance(layer, FixedLayer) or hasattr(layer, "freeze"):
                yield name, layer
        yield "head", self.head


def choose(family: str, name: str, registry: Mapping[str, Choice]) -> Choice:
    """The registry's entry of that name, or an error that lists all of them."""
    if name not in registry:
        raise ValueError(f"{family} must be one of {', '.join(registry)}, got {name!r}; choose one")
    return registry[name]


def build_head(name: str, features: int, n_classes: int) -> UPDHead:
    """A registered UPD head."""
    head: UPDHead = choose("head", name, HEADS)(features, n_classes)
    return head


def build_linear(name: str, inputs: int, outputs: int) -> nn.Module:
    """A registered orthogonal dense layer."""
    layer: nn.Module = choose("linear", name, ORTHOGONAL_LINEARS)(inputs, outputs)
    return layer


def build_conv(name: str, channels: int, kernel_size: int, map_size: tuple[int, int]) -> nn.Module:
    """A registered orthogonal convolution that keeps the number of channels."""
    kind = choose("conv", name, ORTHOGONAL_CONVS)
    layer: nn.Module = kind(channels, channels, kernel_size, map_size)
    return layer
