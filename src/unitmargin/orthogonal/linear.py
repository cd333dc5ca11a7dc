"""What all orthogonal dense layers share."""

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.frozen.dense import Dense
from unitmargin.layers.contract import TrainableLayer
from unitmargin.layers.promises import GNP
from unitmargin.layers.singular_values import singular_values
from unitmargin.orthogonal.polar import polish


class OrthogonalLinear(TrainableLayer):
    r"""Dense layer :math:`h(x) = W x + b` with :math:`W W^T = I` (GNP).

    A subclass says how ``weight()`` comes from the free matrix ``raw``, which starts orthogonal.
    Shapes: ``(batch, in_features)`` to ``(batch, out_features)``, ``out_features <= in_features``.
    The weight is computed in the parameter's dtype whatever autocast says.
    Source: the paper, section 4.1 (fully connected layers).

    Raises:
        ValueError: more outputs than inputs.
    """

    promise = GNP
    exact_in_tf32 = False

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        require_no_growth("features", in_features, out_features)
        self.in_features, self.out_features = in_features, out_features
        self.raw = nn.Parameter(nn.init.orthogonal_(torch.empty(out_features, in_features)))
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def singular_values(self) -> Float[Tensor, " values"]:
        return singular_values(self.weight())

    @abstractmethod
    def weight(self) -> Float[Tensor, "out in"]:
        """The orthogonal weight, differentiable in the layer's parameters."""

    def forward(self, x: Float[Tensor, "batch in"]) -> Float[Tensor, "batch out"]:
        with torch.autocast(x.device.type, enabled=False):
            weight = self.weight()
        return nn.functional.linear(x, weight, self.bias)

    def fix(self) -> Dense:
        return self.stored(self.weight())

    def freeze(self) -> Dense:
        """The deployed layer: a plain weight, polished in float64."""
        return self.stored(polish(self.weight()))

    def stored(self, weight: Float[Tensor, "out in"]) -> Dense:
        """A fixed layer of this weight and this layer's bias, in the dtype of the weight."""
        bias = torch.zeros(self.out_features) if self.bias is None else self.bias.detach()
        return Dense(weight.detach(), bias.to(weight))

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


def start_uniformly(bound: float, *parameters: nn.Parameter | None) -> None:
    """Draw what there is of the parameters anew, uniform on +-bound."""
    for parameter in parameters:
        if parameter is not None:
            nn.init.uniform_(parameter, -bound, bound)


def require_no_growth(what: str, inputs: int, outputs: int) -> None:
    """Raise the error that explains why a GNP layer cannot widen."""
    if outputs > inputs:
        raise ValueError(
            f"out_{what} must be at most in_{what}: a GNP layer needs J J^T = I, and a matrix "
            f"with more rows than columns cannot have orthonormal rows, got {inputs} -> {outputs}; "
            "narrow the layer, or move pixels into channels first (PixelUnshuffle)"
        )
