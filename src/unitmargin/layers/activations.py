r"""Activations with ``J J^T = I`` almost everywhere (GNP).

Component-wise, only piecewise-linear functions of slope :math:`\pm 1` are GNP (the paper's
appendix, lemma on component-wise activations), so :math:`|x|` stands for them; tensor-wise, any
sorting of disjoint groups is a permutation at each point.
"""

import re
from abc import abstractmethod
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.foundation.choice import advice
from unitmargin.foundation.numbers import require_whole
from unitmargin.layers.contract import ExactLayer

Values = Float[Tensor, "*shape"]
Maps = Float[Tensor, "batch c *space"]


class Activation(ExactLayer):
    """A GNP activation over axis 1, of a channel count that ``group`` divides.

    Raises:
        ValueError: a channel count that ``group`` does not divide.
    """

    group: int

    sized: ClassVar[bool] = False
    """Whether the activation takes its ``group``, which its name may then end with."""

    def forward(self, x: Maps) -> Maps:
        channels = x.shape[1]
        if channels % self.group:
            raise ValueError(
                f"{self.kind} needs a channel count that {self.group} divides, got {channels}; "
                "use Abs there, or change the width"
            )
        return self.activate(x)

    @abstractmethod
    def activate(self, x: Maps) -> Maps:
        """The activation of a channel count that ``group`` divides."""


class Abs(Activation):
    r"""Absolute value, :math:`h(x)_i = |x_i|`; slopes :math:`\pm 1`, any channel count.

    Example:
        >>> Abs()(torch.tensor([[-2.0, 3.0]]))
        tensor([[2., 3.]])
    """

    kind, group = "abs", 1

    def activate(self, x: Maps) -> Maps:
        return x.abs()


class _SortPairs(torch.autograd.Function):
    """Larger and smaller of two tensors. The gradient permutes, also at ties, where that of
    ``torch.maximum`` averages and breaks J J^T = I; and it takes half the time."""

    generate_vmap_rule = True

    @staticmethod
    def forward(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        larger, smaller = torch.maximum(first, second), torch.minimum(first, second)
        return larger, smaller, first >= second

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(output[2])
        ctx.mark_non_differentiable(output[2])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (kept,) = ctx.saved_tensors
        larger, smaller, _ = gradients
        return torch.where(kept, larger, smaller), torch.where(kept, smaller, larger)


def sort_pairs(first: Values, second: Values) -> tuple[Values, Values]:
    """Entry-wise maximum and minimum; a permutation of each pair, in both directions."""
    larger, smaller, _ = _SortPairs.apply(first, second)  # type: ignore[no-untyped-call]
    return larger, smaller


class MaxMin(Activation):
    """Maximum and minimum of the two halves of the channels: channel i pairs with i + c/2.

    Source: the paper, section 4.1 (GroupSort with a group size of 2).

    Example:
        >>> MaxMin()(torch.tensor([[1.0, 5.0, 2.0, 3.0]]))
        tensor([[2., 5., 1., 3.]])
    """

    kind, group = "maxmin", 2

    def activate(self, x: Maps) -> Maps:
        first, second = x.chunk(2, dim=1)
        return torch.cat(sort_pairs(first, second), dim=1)


class OPLU(Activation):
    """Maximum and minimum of neighbouring channels: channel 2i pairs with 2i + 1.

    Source: the paper's appendix, definition of OPLU.

    Example:
        >>> OPLU()(torch.tensor([[1.0, 5.0, 2.0, 3.0]]))
        tensor([[5., 1., 3., 2.]])
    """

    kind, group = "oplu", 2

    def activate(self, x: Maps) -> Maps:
        first, second = x.unflatten(1, (-1, 2)).unbind(2)
        return torch.stack(sort_pairs(first, second), dim=2).flatten(1, 2)


class GroupSort(Activation):
    """Sort each group of ``size`` neighbouring channels in descending order.

    With ``size=2`` it equals OPLU. Source: the paper, section 4.1 (GroupSort).

    Raises:
        ValueError: ``size`` below 2.

    Example:
        >>> GroupSort(4)(torch.tensor([[1.0, 5.0, 2.0, 3.0]]))
        tensor([[5., 3., 2., 1.]])
    """

    kind, sized = "groupsort", True

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.group = require_whole("size", size, 2, "use Abs for single channels")

    def configuration(self) -> dict[str, Any]:
        return {"size": self.group}

    def activate(self, x: Maps) -> Maps:
        groups = x.unflatten(1, (-1, self.group))
        ordered: Tensor = groups.sort(dim=2, descending=True).values
        return ordered.flatten(1, 2)


class _Magnitude(torch.autograd.Function):
    """Absolute value with a slope of 1 or -1 everywhere, by the sign bit; that of ``torch.abs`` is
    0 at zero, which breaks J J^T = I."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.abs(), x.signbit()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (negative,) = ctx.saved_tensors
        return torch.where(negative, -gradients[0], gradients[0])


class PartialAbs(Activation):
    r"""Absolute value of the first ``1 / parts`` of the channels; slopes :math:`\pm 1` everywhere.

    Each kink bends the gradient, so fewer of them leave more of a margin.
    Source: LipNeXt (its absolute value of a share of the channels).

    Raises:
        ValueError: ``parts`` below 2.

    Example:
        >>> PartialAbs(2)(torch.tensor([[-1.0, -5.0, -2.0, 3.0]]))
        tensor([[ 1.,  5., -2.,  3.]])
    """

    kind, sized = "partial_abs", True

    def __init__(self, parts: int = 4) -> None:
        super().__init__()
        self.group = require_whole("parts", parts, 2, "use Abs for all channels")

    def configuration(self) -> dict[str, Any]:
        return {"parts": self.group}

    def activate(self, x: Maps) -> Maps:
        folded = x.shape[1] // self.group
        first, rest = x[:, :folded], x[:, folded:]
        return torch.cat((_Magnitude.apply(first)[0], rest), dim=1)  # type: ignore[no-untyped-call]


ACTIVATIONS: dict[str, type[Activation]] = {
    layer.kind: layer for layer in (Abs, MaxMin, OPLU, GroupSort, PartialAbs)
}

SIZED = [name for name, layer in ACTIVATIONS.items() if layer.sized]
"""Activations whose name may end with a size."""


def require_activation(name: str) -> str:
    """The name of an activation, one of ``SIZED`` with or without a size of at least 2 behind it.

    Raises:
        ValueError: unknown name.
    """
    sized = f"({'|'.join(SIZED)})([2-9]|[1-9][0-9]{{1,8}})"
    known = isinstance(name, str) and (name in ACTIVATIONS or re.fullmatch(sized, name))
    if not known:
        raise ValueError(
            f"activation must be one of {', '.join(ACTIVATIONS)}, or {' or '.join(SIZED)} and a "
            f"size of at least 2, got {name!r}; {advice(name, ACTIVATIONS)}"
        )
    return name


def build_activation(name: str, channels: int) -> Activation:
    """The activation of the given name, or Abs where the channel count does not allow it.

    ``groupsort4`` stands for ``GroupSort(4)``, ``partial_abs4`` for ``PartialAbs(4)``. Falling back
    to Abs on odd widths is what the paper's listing does in its first block (3 channels).

    Raises:
        ValueError: unknown name.
    """
    stem = require_activation(name).rstrip("0123456789")
    size = [int(name[len(stem) :])] if stem != name else []
    activation = ACTIVATIONS[stem](*size)
    return activation if channels % activation.group == 0 else Abs()
