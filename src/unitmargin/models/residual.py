"""The residual of 1-Lipschitz networks in training."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.frozen import ConvexCombination
from unitmargin.models.classifier import fixed_layer, frozen_layer

INITIAL_GATE = 0.5
"""Start of the gate in the public code of ResNet9: the input's share is then 0.622."""


class ConvexResidual(nn.Module):
    r"""``t x + (1 - t) B(x)`` with :math:`t = \mathrm{sigmoid}(a)` and a trainable number a.

    1-Lipschitz if B is; not GNP (``gnp`` is false). See
    :class:`unitmargin.frozen.ConvexCombination`.
    """

    gnp = False

    def __init__(self, *branch: nn.Module) -> None:
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

    def fix(self) -> ConvexCombination:
        """The layer as it is evaluated, the weights of its branch stored."""
        return ConvexCombination(self.share.detach(), [fixed_layer(layer) for layer in self.branch])

    def freeze(self) -> ConvexCombination:
        """The deployed layer; the share is computed in float64."""
        share = self.gate.detach().double().sigmoid()
        return ConvexCombination(share, [frozen_layer(layer) for layer in self.branch])
