"""What all heads share: a weight with a promise about its rows, and logits in full precision."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.frozen.dense import Dense


class Head(nn.Module, ABC):
    """Output layer ``W x + b``; ``promise`` says what holds for the rows of W.

    - ``upd``: all rows are at distance 1 from each other (unitary pair difference).
    - ``orthonormal``: ``W W^T = I``.
    - ``unit_rows``: every row has norm 1, and nothing is said of pairs.

    Certificates never read the promise: they divide by row distances measured in the frozen head.
    """

    promise: ClassVar[str]
    bias: nn.Parameter

    @abstractmethod
    def weight(self) -> Float[Tensor, "c m"]:
        """The weight, differentiable in the parameters."""

    def forward(self, x: Float[Tensor, "batch m"]) -> Float[Tensor, "batch c"]:
        with torch.autocast(x.device.type, enabled=False):
            return nn.functional.linear(x.to(self.bias.dtype), self.weight(), self.bias)

    def fix(self) -> Dense:
        """The head as it is evaluated, its weight stored."""
        return Dense(self.weight().detach(), self.bias.detach())

    @abstractmethod
    def freeze(self) -> Dense:
        """The deployed head, its promise kept exactly in float64."""


def check_classes(classes: int) -> None:
    """Raise unless there is a pair of classes to tell apart."""
    if classes < 2:
        raise ValueError(f"n_classes must be at least 2, got {classes}; add a class")
