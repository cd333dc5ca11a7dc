"""The average pool that keeps gradients' norms."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.foundation.numbers import require_whole
from unitmargin.layers.arithmetic import Affine, Arithmetic, gamma
from unitmargin.layers.bounds import ENTRIES, LayerConstants
from unitmargin.layers.contract import GNPLayer, require_maps

POOL_ROUNDINGS = 1
"""Roundings of an average beside one for each entry of its window: the division may be a product
with a rounded reciprocal."""


class ScaledAveragePool(GNPLayer):
    r"""Sum over disjoint ``size x size`` windows divided by ``size``; GNP.

    Each row of the Jacobian has :math:`s^2` entries :math:`1/s` and rows do not overlap, so
    :math:`J J^T = I`. With ``size=2`` it is ``AvgPool2d(2, divisor_override=2)``.
    Shapes: ``(batch, c, size*h, size*w)`` to ``(batch, c, h, w)``.
    Source: Trockman, Kolter, arXiv 2104.07167, public code.

    Raises:
        ValueError: ``size`` does not divide both sides of the map.

    Example:
        >>> import torch
        >>> ScaledAveragePool(2)(torch.ones(1, 1, 2, 2)).item()
        2.0
    """

    kind = "scaled_average_pool"

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.size = require_whole("size", size, 1, "give the side of a window")

    def configuration(self) -> dict[str, Any]:
        return {"size": self.size}

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch c hh ww"]:
        require_maps(x)
        height, width = x.shape[-2:]
        if height % self.size or width % self.size:
            raise ValueError(
                f"average pool needs a map that is a multiple of {self.size} on both sides, got "
                f"{height} x {width}; resize or crop the input"
            )
        return nn.functional.avg_pool2d(x, self.size, divisor_override=self.size)

    def errors(
        self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic
    ) -> tuple[Affine, Affine]:
        """(15): the absolute values of a window sum to at most its norm times its side."""
        entries = self.size**2
        error = incoming * gamma(entries + POOL_ROUNDINGS, arithmetic.unit)
        return error + arithmetic.underflow(entries, ENTRIES), incoming * float(self.size)
