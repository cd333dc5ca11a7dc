"""What all classifiers share: input normalisation, features, head."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.foundation.choice import choose, require_kind
from unitmargin.foundation.numbers import require_shape, require_whole, shown
from unitmargin.heads import HEADS, Head
from unitmargin.layers.activations import build_activation
from unitmargin.layers.contract import Layer, TrainableLayer, walk
from unitmargin.layers.half_plane import Size
from unitmargin.layers.network import Network
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.promises import Promise
from unitmargin.layers.rearrangement import Flatten
from unitmargin.orthogonal import ORTHOGONAL_CONVS, ORTHOGONAL_LINEARS

PARTS = ("normalize", "features", "head")
"""The modules of a classifier, in the order of their evaluation."""

PRECISE = (torch.float32, torch.float64)
"""Types in which a weight can be orthogonal to the tolerances that are promised."""

DEAR = 1e9
"""Multiplications for all weights from which an evaluation is dear: a twentieth of a second at
every call on one CPU core, where the network itself takes milliseconds."""

CALLER = 4
"""Frames from ``forward`` to the caller of the model, through the two of ``nn.Module``."""

DEAR_EVALUATION = (
    "this model makes its orthogonal weights anew at every evaluation; evaluate "
    "unitmargin.freeze(model), or unitmargin.models.fixed_network(model) between two steps of "
    "training, which store them"
)


class DearEvaluationWarning(UserWarning):
    """A classifier in training is evaluated, and making its weights costs most of the time."""


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

    Parameters are float32 or float64. Evaluation without gradients makes every weight anew, and
    warns (:class:`DearEvaluationWarning`, once a line of the caller) where that is dear: a
    network with stored weights comes from ``freeze`` or ``fixed_network``.

    Raises:
        TypeError: ``in_shape`` or ``n_classes`` that are no whole numbers; where it is read, a part
            that would be evaluated and not deployed.
        ValueError: an unknown name, a shape that the model does not take, a growing width; in
            ``forward``, parameters of another type.
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
        if normalize is not None:
            require_kind("normalize", normalize, Normalize, "leave it out for none")
            if len(normalize.mean) != channels:
                raise ValueError(
                    f"normalize must have a mean and a deviation for each of the {channels} "
                    f"channels, got {len(normalize.mean)}; measure them on the same inputs"
                )
        normalize = normalize or Normalize(torch.zeros(channels), torch.ones(channels))
        self.normalize = normalize.in_type(torch.get_default_dtype())
        self.features = nn.Sequential(*layers)
        self.head = choose("head", head, HEADS)(width, self.n_classes)
        anywhere = torch.tensor((-math.inf, math.inf), dtype=torch.float64)
        self.register_buffer("domain", anywhere)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        domain = self.domain
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self.domain.dtype != domain.dtype:  # that of the inputs, whatever type weights have
            self.domain = domain.to(self.domain.device)
        return self

    def forward(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch classes"]:
        require_precise(self)
        self._require_own_type(x)
        quiet = self.training or torch.is_grad_enabled() or torch.compiler.is_compiling()
        if not quiet and is_dear(self):
            warnings.warn(DEAR_EVALUATION, DearEvaluationWarning, stacklevel=CALLER)
        return super().forward(x)

    def _require_own_type(self, x: Tensor) -> None:
        """Raise for inputs of another type than the parameters', but under autocast."""
        own = self.head.bias.dtype
        if x.dtype != own and not torch.is_autocast_enabled(x.device.type):
            step = f"pass x.to({own})"
            if not x.is_floating_point():
                step = f"scale it to the units of the training, as in x.to({own}) / 255"
            raise ValueError(f"x must be {own}, the type of the parameters, got {x.dtype}; {step}")

    def normalised(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        return self.normalize(x)

    def logits(self, normalised: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch classes"]:
        return self.head(self.features(normalised))

    def named_layers(self) -> list[tuple[str, Layer]]:
        self._require_parts()
        require_precise(self)
        return [*walk("normalize", self.normalize), *walk("features", self.features)]

    def _require_parts(self) -> None:
        """Raise unless normalisation, features and a head are all that there is."""
        if not isinstance(self.head, Head):
            raise TypeError(
                f"head must be a unitmargin.heads.Head, got {type(self.head).__name__}; build the "
                'model with the head you want (head="simplex")'
            )
        surplus = [name for name, _ in self.named_children() if name not in PARTS]
        if surplus:
            raise TypeError(
                f"{surplus[0]} must be no part of a {type(self).__name__}, got a "
                f"{type(self.get_submodule(surplus[0])).__name__}, which is not deployed; put it "
                "into features as a layer, or keep it outside of the model"
            )

    @property
    def head_promise(self) -> Promise:
        return self.head.promise

    def head_weight(self) -> Float[Tensor, "classes features"]:
        with torch.no_grad():
            return self.head.weight()


def require_precise(model: nn.Module) -> None:
    """Raise unless all parameters have a type in which weights can be orthogonal."""
    short = {parameter.dtype for parameter in model.parameters()}.difference(PRECISE)
    if short:
        raise ValueError(
            f"parameters must be float32 or float64, got {short.pop()}, which cannot hold an "
            "orthogonal weight; call model.float(), and train(precision='bfloat16') or "
            "torch.autocast for short activations"
        )


def is_dear(model: nn.Module) -> bool:
    """Whether making all weights takes more than ``DEAR`` multiplications."""
    layers = (layer for layer in model.modules() if isinstance(layer, TrainableLayer))
    return sum(layer.making_cost() for layer in layers) > DEAR


def dense_layers(
    inputs: int, hidden: Sequence[int] | None, default: Sequence[int], activation: str, linear: str
) -> tuple[list[Layer], int]:
    """A flattening, orthogonal dense layers of the ``hidden`` widths (by default ``default``, where
    that does not grow) with the activation behind each, and the last width."""
    layers: list[Layer] = [Flatten()]
    if hidden is not None and not isinstance(hidden, Sequence):
        raise TypeError(f"hidden must be widths such as (64, 64), got {shown(hidden)}; list them")
    for given in [min(size, inputs) for size in default] if hidden is None else hidden:
        width = require_whole("a width of hidden", given, 1, "list whole numbers")
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
