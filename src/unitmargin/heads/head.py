"""What all heads share: a weight with a promise about its rows, and logits in full precision."""

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.frozen.dense import Dense
from unitmargin.layers.contract import TrainableLayer
from unitmargin.layers.singular_values import singular_values


class Head(TrainableLayer):
    """Output layer ``W x + b``; its promise says what holds for the rows of W.

    See ``layers/promises.py`` for the promises of heads. Certificates never read them: they divide
    by row distances measured in the frozen head.
    """

    bias: nn.Parameter

    def __init__(self, classes: int) -> None:
        super().__init__()
        if classes < 2:
            raise ValueError(f"n_classes must be at least 2, got {classes}; add a class")

    @abstractmethod
    def weight(self) -> Float[Tensor, "c m"]:
        """The weight, differentiable in the parameters."""

    def forward(self, x: Float[Tensor, "batch m"]) -> Float[Tensor, "batch c"]:
        with torch.autocast(x.device.type, enabled=False):
            return nn.functional.linear(x.to(self.bias.dtype), self.weight(), self.bias)

    def singular_values(self) -> Float[Tensor, " values"]:
        return singular_values(self.weight())

    def fix(self) -> Dense:
        return Dense(self.weight().detach(), self.bias.detach())
