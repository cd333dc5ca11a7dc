"""What all classifiers share: input normalisation, features, head."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.foundation.choice import choose
from unitmargin.foundation.numbers import require_shape, require_whole
from unitmargin.heads import HEADS
from unitmargin.layers.activations import build_activation
from unitmargin.layers.contract import Layer, Network
from unitmargin.layers.half_plane import Size
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.promises import Promise
from unitmargin.layers.rearrangement import Flatten
from unitmargin.orthogonal import ORTHOGONAL_CONVS, ORTHOGONAL_LINEARS


class Classifier(Network):
    """``head(features(normalize(x)))``; every part answers the contract of a layer.

    A subclass makes the layers, the last of which has ``width`` outputs, and names the head.
    Shapes: ``(batch, *in_shape)`` to logits ``(batch, n_classes)``.

    Arguments of every model:
        in_shape: of an input; ``(channels, height, width)`` where convolutions come first.
        n_classes: at least 2.
        activation, conv, linear, head: registered names; Abs where the groups of an activation do
            not divide the channels.
        hidden: dense widths, never growing; default: the original's, or as wide as the flattened
            features allow.
        normalize: input normalisation; default: none.

    ``domain`` is the interval of the entries of the inputs it was trained on, until then any.

    Raises:
        TypeError: ``in_shape`` or ``n_classes`` that are no whole numbers.
        ValueError: an unknown name, a shape that the model does not take, a growing width.
    """

    domain: Tensor

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
        self.in_shape = tuple(in_shape)
        self.n_classes = require_whole("n_classes", n_classes, 2, "pass the number of classes")
        channels = in_shape[0]
        self.normalize = normalize or Normalize(torch.zeros(channels), torch.ones(channels))
        self.features = nn.Sequential(*layers)
        self.head = choose("head", head, HEADS)(width, self.n_classes)
        anywhere = torch.tensor((-math.inf, math.inf), dtype=torch.float64)
        self.register_buffer("domain", anywhere)

    def normalised(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        return self.normalize(x)

    def logits(self, normalised: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch classes"]:
        return self.head(self.features(normalised))

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


def dense_layers(
    inputs: int, hidden: Sequence[int] | None, default: Sequence[int], activation: str, linear: str
) -> tuple[list[Layer], int]:
    """A flattening, orthogonal dense layers of the ``hidden`` widths (by default ``default``, where
    that does not grow) with the activation behind each, and the last width."""
    layers: list[Layer] = [Flatten()]
    for width in [min(size, inputs) for size in default] if hidden is None else hidden:
        layers.append(choose("linear", linear, ORTHOGONAL_LINEARS)(inputs, width))
        layers.append(build_activation(activation, width))
        inputs = width
    return layers, inputs


def conv_layers(
    conv: str, inputs: int, outputs: int, kernel_size: int, map_size: Size, activation: str
) -> list[Layer]:
    """An orthogonal convolution and the activation behind it."""
    build = choose("conv", conv, ORTHOGONAL_CONVS)
    return [build(inputs, outputs, kernel_size, map_size), build_activation(activation, outputs)]


def input_length(in_shape: Sequence[int]) -> int:
    """How many numbers an input has; raises unless there is one at least."""
    return math.prod(require_shape("in_shape", in_shape))


def image_shape(in_shape: Sequence[int], factor: int = 1) -> tuple[int, int, int]:
    """``in_shape`` as channels, height and width, the sides divisible by ``factor``."""
    input_length(in_shape)
    if len(in_shape) != 3:
        raise ValueError(
            f"in_shape must be (channels, height, width), got {tuple(in_shape)}; for vectors use "
            "the model dense_ugnn"
        )
    channels, height, width = in_shape
    if height % factor or width % factor:
        raise ValueError(
            f"height and width must be divisible by {factor}, got {height} x {width}; resize or "
            "crop the input"
        )
    return channels, height, width


def halvings(height: int, width: int, most: int) -> int:
    """How often both sides can be halved, at most ``most`` times."""
    return max(n for n in range(most + 1) if height % 2**n == 0 and width % 2**n == 0)
