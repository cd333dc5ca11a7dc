"""The residual of 1-Lipschitz networks in training."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.frozen.combination import ConvexCombination, combined_gains
from unitmargin.layers.contract import Gains, Layer, TrainableLayer, inner_gains
from unitmargin.layers.promises import LIPSCHITZ

INITIAL_GATE = 0.5
"""Start of the gate in the public code of ResNet9: the input's share is then 0.622."""


class ConvexResidual(TrainableLayer):
    r"""``t x + (1 - t) B(x)`` with :math:`t = \mathrm{sigmoid}(a)` and a trainable number a.

    1-Lipschitz if B is; not GNP. See :class:`unitmargin.frozen.ConvexCombination`.
    """

    promise = LIPSCHITZ

    def __init__(self, *branch: Layer) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.tensor(INITIAL_GATE))
        self.branch = nn.Sequential(*branch)

    @property
    def share(self) -> Float[Tensor, ""]:
        """The input's share t."""
        share: Tensor = self.gate.sigmoid()
        return share

    def forward(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        share = self.share
        output: Tensor = self.branch(x)
        return share * x + (1.0 - share) * output

    def sublayers(self) -> list[Layer]:
        return [layer for layer in self.branch if isinstance(layer, Layer)]

    def singular_values(self) -> None:
        return None

    def gains(self, inner: Sequence[float] | None = None) -> Gains:
        return combined_gains(float(self.share.detach()), inner_gains(self, inner))

    def fix(self) -> ConvexCombination:
        return ConvexCombination(self.share.detach(), [layer.fix() for layer in self.sublayers()])

    def freeze(self) -> ConvexCombination:
        """The deployed layer; the share is computed in float64."""
        share = self.gate.detach().double().sigmoid()
        return ConvexCombination(share, [layer.freeze() for layer in self.sublayers()])
