"""What all heads share, and those of 1-Lipschitz networks: orthonormal rows, or rows of norm 1."""

import math
from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.frozen.dense import Dense
from unitmargin.layers.contract import TrainableLayer, require_vectors
from unitmargin.layers.promises import ORTHONORMAL, UNIT_ROWS
from unitmargin.layers.singular_values import singular_values
from unitmargin.orthogonal import OrthogonalLinear
from unitmargin.orthogonal.magnitude import of_size_one

MORE_FEATURES = (
    "let what comes before the head end wider: hidden layers, width, a smaller depth or larger "
    "images for convolutions, a widen in a plan"
)
"""The next step for a head of more classes than it has features for, whatever the model."""


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
        require_vectors(x)
        with torch.autocast(x.device.type, enabled=False):
            return nn.functional.linear(x.to(self.bias.dtype), self.weight(), self.bias)

    def singular_values(self) -> Float[Tensor, " values"]:
        return singular_values(self.weight())

    def fix(self) -> Dense:
        return Dense(self.weight().detach(), self.bias.detach())


class OrthonormalHead(Head):
    r"""Output layer with :math:`W W^T = I`: an orthogonal dense layer whose outputs are the logits.

    Two rows are :math:`\sqrt 2` apart, so a margin certifies :math:`1/\sqrt 2` of itself.

    Raises:
        ValueError: fewer features than classes.
    """

    promise = ORTHONORMAL
    tf32_choice = 'head = "manifold"'

    def __init__(self, features: int, classes: int, linear: type[OrthogonalLinear]) -> None:
        super().__init__(classes)
        if features < classes:
            raise ValueError(
                f"an orthonormal head needs at least {classes} features for {classes} classes, "
                f"got {features}; {MORE_FEATURES}"
            )
        self.linear = linear(features, classes)
        assert self.linear.bias is not None  # the default of every dense layer
        # One owner: files refuse tensors of two names.
        self.bias, self.linear.bias = self.linear.bias, None

    @property
    def exact_in_tf32(self) -> bool:
        """As its layer is."""
        parts = [part for part in self.children() if isinstance(part, TrainableLayer)]
        return all(part.exact_in_tf32 for part in parts)

    def weight(self) -> Float[Tensor, "c m"]:
        if not isinstance(self.linear, OrthogonalLinear):
            raise TypeError(
                f"linear of an orthonormal head must be an OrthogonalLinear, got "
                f"{type(self.linear).__name__}; build the model with the head you want"
            )
        return self.linear.weight()

    def forward(self, x: Float[Tensor, "batch m"]) -> Float[Tensor, "batch c"]:
        # The layer's own forward: a skew one never makes its weight in training.
        with torch.autocast(x.device.type, enabled=False):
            return self.linear(x.to(self.bias.dtype)) + self.bias

    def freeze(self) -> Dense:
        weight = self.linear.freeze().weight
        return Dense(weight, self.bias.detach().to(weight))


class RowNormalizedHead(Head):
    r"""Last-layer normalisation (LLN): :math:`W_h = U_h / \|U_h\|`, every row of norm 1.

    The layer as a whole is not 1-Lipschitz, and pairs of rows are up to 2 apart: each pair of
    classes is certified by its own distance.
    Weights and bias start as those of ``torch.nn.Linear``. A row of zeros stays one.
    Source: Singla, Singla, Feizi, arXiv 2108.04062.
    """

    promise = UNIT_ROWS

    def __init__(self, features: int, classes: int) -> None:
        super().__init__(classes)
        bound = 1.0 / math.sqrt(features)
        self.raw = nn.Parameter(torch.empty(classes, features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(classes).uniform_(-bound, bound))

    def weight(self) -> Float[Tensor, "c m"]:
        return _normalised(self.raw)

    def freeze(self) -> Dense:
        return Dense(_normalised(self.raw.detach().double()), self.bias.detach().double())


def _normalised(rows: Float[Tensor, "c m"]) -> Float[Tensor, "c m"]:
    rows = of_size_one(rows, dim=1)
    norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / torch.where(norms > 0.0, norms, 1.0)
