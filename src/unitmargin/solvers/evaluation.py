"""The classifier that is searched: in its own precision, and in float64 for the last word."""

import copy
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from unitmargin.foundation.choice import require_kind
from unitmargin.frozen import FrozenNetwork
from unitmargin.solvers.geometry import Vectors

PROBABILITY_TOLERANCE = 1e-9
"""Softmax rows computed in float64 sum to 1 within a few ulp a class; logits by chance only."""

PROBE_SHIFT = 1e3
"""Softmax outputs stay probabilities however far the input is moved; logits leave [0, 1]."""


@dataclass(frozen=True)
class Evaluator:
    """Two evaluation copies of one model; the user's own object is never written to.

    Attributes:
        native: the model in its own precision, where the search runs.
        wide: the same weights in float64, which decides what counts as adversarial.
        dtype: precision of ``native``.
        constants: Lipschitz constants of all logit pairs, None where none are known.
        in_shape: shape of one input.
    """

    native: nn.Module
    wide: nn.Module
    dtype: torch.dtype
    constants: Float64[Tensor, "classes classes"] | None
    in_shape: tuple[int, ...]

    def in_float64(self) -> "Evaluator":
        """The same model, searched where the last word is spoken."""
        return replace(self, native=self.wide, dtype=torch.float64)

    def logits(self, points: Vectors, wide: bool = False) -> Tensor:
        """Logits ``(rows, classes)`` in the model's precision, returned as float64; ``wide``: of
        the float64 copy, as it returns them. Differentiable."""
        model, dtype = (self.wide, torch.float64) if wide else (self.native, self.dtype)
        # A copy: models that work in place write into what they are given.
        output: Tensor = model(points.to(dtype, copy=True).reshape(-1, *self.in_shape))
        return output if wide else output.double()


def prepare(model: nn.Module, x: Tensor) -> Evaluator:
    """Copies of the model in evaluation mode with parameters that need no gradient.

    A :class:`FrozenNetwork` has neither modes nor parameters, and is copied alone.

    Raises:
        ValueError: the model cannot be copied.
    """
    in_shape = tuple(x.shape[1:])
    if isinstance(model, FrozenNetwork):
        constants = model.pair_constants().to(x.device, torch.float64)
        # A copy: of a network of inference mode no gradient could be asked.
        network = copy.deepcopy(model.network)
        return Evaluator(network, model.in_float64(), model.dtype, constants, in_shape)
    try:
        native = copy.deepcopy(model).eval().requires_grad_(False)
        numbers = (*native.parameters(), *native.buffers())
        dtype = next((one.dtype for one in numbers if one.is_floating_point()), x.dtype)
        widest = {torch.float64, torch.complex128}
        exact = all(one.dtype in widest for one in numbers if _is_inexact(one))
        wide = native if exact and dtype == torch.float64 else _widened(copy.deepcopy(native))
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"model must be copyable by copy.deepcopy, got {type(model).__name__} ({error}); "
            "freeze it, or pass a module that holds plain parameters"
        ) from None
    return Evaluator(native, wide, dtype, None, in_shape)


def _is_inexact(numbers: Tensor) -> bool:
    return numbers.is_floating_point() or numbers.is_complex()


def _widened(model: nn.Module) -> nn.Module:
    """The model in float64, complex numbers too, which ``double`` leaves as they are."""
    model.double()
    model._apply(lambda one: one.to(torch.complex128) if one.is_complex() else one)
    return model


def require_logits(evaluator: Evaluator, points: Vectors, logits: Tensor, labels: Tensor) -> None:
    """Raise unless the float64 copy gives logits ``(rows, classes)`` in float64, no probabilities,
    of at least two classes, among them every label."""
    require_kind("output of model", logits, Tensor, "return the logits alone")
    if logits.shape[:1] != points.shape[:1] or logits.ndim != 2 or logits.shape[1] < 2:
        raise ValueError(
            f"model must return logits of shape ({len(points)}, classes) with at least 2 classes, "
            f"got {tuple(logits.shape)}; for one output per sample return (s, -s)"
        )
    if logits.dtype != torch.float64:
        raise ValueError(
            f"model must compute in float64 after model.double(), got {logits.dtype}; remove the "
            "casts to a fixed dtype inside its forward"
        )
    if bool((labels >= logits.shape[1]).any()):
        raise ValueError(
            f"labels must be below the {logits.shape[1]} classes of the model, got "
            f"{int(labels.max())}; correct the encoding of labels"
        )
    if _are_probabilities(logits) and _are_probabilities(
        evaluator.logits(points + PROBE_SHIFT, wide=True)
    ):
        raise ValueError(
            "model must return logits, got rows in [0, 1] that sum to 1; remove the softmax: "
            "its outputs saturate and have no margin"
        )


def _are_probabilities(outputs: Tensor) -> bool:
    bounded = (outputs >= 0.0) & (outputs <= 1.0)
    summing = (outputs.sum(1) - 1.0).abs() <= PROBABILITY_TOLERANCE * outputs.shape[1]
    return len(outputs) > 0 and bool(bounded.all()) and bool(summing.all())
