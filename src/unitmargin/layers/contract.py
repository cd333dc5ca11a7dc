"""What every layer owes: abstract types of fixed layers and of trainable layers.

Whoever reads a network (audit, bounds, optimisers, precision, files) asks its layers and knows no
kind by name.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.layers.arithmetic import UP, Affine, Arithmetic
from unitmargin.layers.bounds import ENTRIES, LayerConstants, LayerRounding
from unitmargin.layers.promises import GNP, LIPSCHITZ, Promise


class Gains(NamedTuple):
    """Smallest and largest factor by which a layer changes a distance, or bounds of them."""

    smallest: float
    largest: float


class ManifoldParameters(NamedTuple):
    """Parameters that are orthogonal themselves: real matrices, and complex ones in two parts."""

    real: Sequence[nn.Parameter] = ()
    paired: Sequence[nn.Parameter] = ()


class Layer(nn.Module, ABC):
    """A layer of a network: what it promises, how it changes distances, how it is stored."""

    __call__: Callable[..., Tensor]

    @property
    @abstractmethod
    def promise(self) -> Promise:
        """What the layer states of itself."""

    @property
    def gnp(self) -> bool:
        """Whether ``J J^T = I`` is promised almost everywhere."""
        return self.promise == GNP

    def sublayers(self) -> Sequence["Layer"]:
        """The layers inside this one, in order; they stand in its module ``branch``."""
        return ()

    @abstractmethod
    def singular_values(self) -> Float[Tensor, " values"] | None:
        """Singular values of the layer's linear part as it is evaluated, ascending, in float64;
        None if it has none."""

    def gains(self, inner: Sequence[float] | None = None) -> Gains:
        """Extreme singular values, or bounds of them where there are sublayers, whose largest gains
        are ``inner`` where they are known.

        Raises:
            ValueError: a layer without a linear part that does not define its gains.
        """
        with torch.no_grad():
            values = self.singular_values()
        if values is None:
            raise ValueError(
                f"a layer must have singular values or gains, got {type(self).__name__} with "
                "neither; define its gains()"
            )
        return Gains(float(values[0]), float(values[-1]))

    @abstractmethod
    def fix(self) -> "FixedLayer":
        """A fixed layer that computes what this one does in evaluation; it may share tensors."""

    @abstractmethod
    def freeze(self) -> "FixedLayer":
        """The deployed form, its promise made exact in float64; it may share tensors."""


def inner_gains(layer: Layer, known: Sequence[float] | None) -> Sequence[float]:
    """The largest gains of the sublayers, measured unless they are known."""
    return [inner.gains().largest for inner in layer.sublayers()] if known is None else known


class FixedLayer(Layer):
    """A layer without a trainable weight: the same object serves in training and in deployment.

    A frozen network is a list of them. ``kind`` names the layer in files. The defaults are those
    of a layer of norm 1 without a weight that makes zeros of zeros.
    """

    kind: ClassVar[str]

    normalises: ClassVar[bool] = False
    """Whether the layer is an input normalisation, which comes first: norms are then those of its
    output."""

    @property
    def promise(self) -> Promise:
        return LIPSCHITZ

    def configuration(self) -> dict[str, Any]:
        """The arguments, as JSON values, that rebuild the layer (tensors excluded)."""
        return {}

    @classmethod
    def rebuild(cls, configuration: dict[str, Any], tensors: dict[str, Tensor]) -> "FixedLayer":
        """Inverse of ``configuration()`` and of the layer's state dictionary."""
        return cls(**configuration, **tensors)

    def singular_values(self) -> Float[Tensor, " values"] | None:
        return None

    def norm(self) -> float:
        """Lipschitz constant in the l2 norm; exactly 1 for rearrangements and disjoint windows."""
        return 1.0

    def gains(self, inner: Sequence[float] | None = None) -> Gains:
        return Gains(1.0 if self.gnp else 0.0, self.norm())

    def constants(self) -> LayerConstants:
        """Proved bounds of the layer, from its stored numbers.

        ``bias`` bounds the norm of the output at an input of zeros. A network is refused where it
        is smaller than that norm: activations would be larger than their bounds.
        """
        return LayerConstants(self.norm())

    def rounding(self, unit: float) -> float:
        """Largest error of one evaluation, relative to the norm of the layer's input, in
        arithmetic with the given unit roundoff; 0 for layers that move and compare numbers only.

        A layer without this statement is not certified: its error is unknown.
        """
        raise ValueError(
            f"{type(self).__name__} states no rounding error, so its network has no sound radius; "
            "define its rounding(unit) method"
        )

    def errors(
        self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic
    ) -> tuple[Affine, Affine]:
        """Error made in the layer, and bound of the numbers met on the way to its output, for
        inputs of norm ``incoming``."""
        relative = self.rounding(arithmetic.unit)
        lost = arithmetic.underflow(1, ENTRIES) if relative else Affine()
        return incoming * relative + lost, incoming

    def bound_rounding(
        self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic
    ) -> LayerRounding:
        """Error and output norm of the layer as ``arithmetic`` evaluates it.

        Raises:
            ValueError: a layer that states no rounding error.
        """
        error, largest = self.errors(constants, incoming, arithmetic)
        output = (incoming * constants.norm + Affine(constants.bias) + error) * UP
        largest = largest + incoming + output
        return LayerRounding(self.kind, constants.norm, error, output, largest, error)

    def in_type(self, dtype: torch.dtype) -> "FixedLayer":
        """A copy with its numbers in another type: what a profile evaluates and bounds.

        A layer of this package is made anew from what a file would hold; one of another is copied.
        """
        kind = own_kind(self)
        known = kind is not None and kind.__module__.startswith(f"{__package__.split('.')[0]}.")
        return remade(self, dtype) if known else copy.deepcopy(self).to(dtype)

    def fix(self) -> "FixedLayer":
        return self

    def freeze(self) -> "FixedLayer":
        return self


def own_kind(layer: FixedLayer) -> type[FixedLayer] | None:
    """The class that names the kind of a layer in files; None of one without a kind."""
    return next((one for one in type(layer).__mro__ if "kind" in vars(one)), None)


def remade(layer: FixedLayer, dtype: torch.dtype) -> FixedLayer:
    """The layer that a file would give: of its kind, configuration and stored numbers, in another
    type. Tables and parts that follow from these are made anew, and shapes are judged.

    Raises:
        ValueError: numbers that do not belong together.
    """
    kind = own_kind(layer) or type(layer)
    state = layer.state_dict()
    stored = {name: tensor.detach().to(dtype, copy=True) for name, tensor in state.items()}
    return kind.rebuild(layer.configuration(), stored)


def require_fixed(layer: nn.Module) -> FixedLayer:
    """The layer, or a TypeError that names what it is instead of a fixed layer."""
    if not isinstance(layer, FixedLayer):
        raise TypeError(
            f"a frozen network must hold fixed layers alone, got {type(layer).__name__}, of which "
            "nothing could be proved; write it as a unitmargin.layers.contract.FixedLayer"
        )
    return layer


def require_hidden(layer: nn.Module) -> FixedLayer:
    """The layer, if it may stand behind others: an input normalisation states the norm of its own
    output, which is that of a first layer alone."""
    fixed = require_fixed(layer)
    if fixed.normalises:
        raise ValueError(
            "an input normalisation must be the first layer of its network, got one behind "
            "another or in a branch; fold it into the weights of its neighbour"
        )
    return fixed


def require_maps(x: Tensor) -> None:
    """Raise unless ``x`` are maps: a row or a single map would be taken for a batch of others."""
    if x.ndim != 4:
        raise ValueError(
            f"x must be maps (batch, channels, height, width), got shape {tuple(x.shape)}; give "
            "the network an in_shape of three lengths"
        )


def require_vectors(x: Tensor) -> None:
    """Raise unless ``x`` are vectors: the bias of several rows would be larger than its bound."""
    if x.ndim != 2:
        raise ValueError(
            f"x must be vectors (batch, in), got shape {tuple(x.shape)}; put a Flatten layer "
            "before the dense one"
        )


class GNPLayer(FixedLayer):
    """A fixed layer with ``J J^T = I`` almost everywhere."""

    promise = GNP


class ExactLayer(GNPLayer):
    """A GNP layer that moves, compares and negates numbers: nothing is rounded."""

    def rounding(self, unit: float) -> float:
        return 0.0


def walk(name: str, module: nn.Module) -> list[tuple[str, Layer]]:
    """The layers of a module in the order of their evaluation, each with its name.

    Raises:
        TypeError: a module that is no layer, which would be evaluated and not deployed.
    """
    if isinstance(module, Layer):
        return [(name, module)]
    if not isinstance(module, nn.Sequential | nn.ModuleList):
        raise TypeError(
            f"{name} must be a layer that answers unitmargin.layers.contract.Layer, got "
            f"{type(module).__name__}; write it as one, or leave it out"
        )
    # Not named_children(), which names a layer that stands at two places once.
    children = ((child, inner) for child, inner in module._modules.items() if inner is not None)
    return [entry for child, inner in children for entry in walk(f"{name}.{child}", inner)]


class TrainableLayer(Layer):
    """A layer with parameters, which says how its weight comes from them."""

    tf32_choice: ClassVar[str] = "weights that no product makes"
    """What to choose in its place under TF32, as a recipe says it, where it is not exact there."""

    polishing_tolerance: ClassVar[float] = 1e-3
    """How far freezing may move a weight, in the Frobenius norm. What their own optimisers leave is
    rounding: measured 2e-6 for all layers and heads but Cholesky, and it grows with the root of the
    number of rows. Weights that left the manifold under AdamW cost accuracy from 0.3 on."""

    @property
    def exact_in_tf32(self) -> bool:
        """Whether the weight is of float32 accuracy where CUDA may round factors of products."""
        return True

    def making_cost(self) -> float:
        """About how many multiplications make the weight at every evaluation, or cost as much; 0
        where a parameter is the weight."""
        return 0.0

    def manifold_parameters(self) -> ManifoldParameters:
        """Parameters to be moved on the manifold; all others are free."""
        return ManifoldParameters()

    def settings(self) -> dict[str, Any]:
        """What the layer computes by, beside its kind and its tensors; values that print."""
        return {}
