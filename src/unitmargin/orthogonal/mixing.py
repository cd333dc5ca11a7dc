"""Orthogonal matrices on slices of maps, the weights on the manifold."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.mixing import MIXINGS, Mixing
from unitmargin.layers.mixing import mix, require_absolute
from unitmargin.layers.singular_values import singular_values
from unitmargin.layers.slices import Arrangement
from unitmargin.orthogonal.polar import polish
from unitmargin.orthogonal.slices import OrthogonalSlices

ABSOLUTE = 0.25
"""Share of the outputs that get absolute values: half of them, which is MaxMin in a rotated basis,
lost a point of accuracy."""

ANGLE = 0.4
"""Root mean square of the angles, in radians, by which a weight turns at the start: near the
identity, where depth does not hurt."""


class OrthogonalMixing(OrthogonalSlices):
    r"""Mixing of slices, :math:`y_s = a(W_s x_s + b_s)` with :math:`W_s W_s^T = I` (GNP).

    The ``arrangement`` says how maps are cut into slices, and which slices share a matrix; ``a`` is
    the absolute value of the first ``absolute`` outputs of each slice. The parameter is the weight;
    train it with ``build_optimizers``. Weights start near the identity, biases at zero.
    Proof: cutting and placing are permutations P, a has slopes of 1 and -1, so
    :math:`J = P_2 D (\oplus_s W_s) P_1` with D diagonal of signs, and J J^T = I.
    Shapes: ``(batch, channels, h, w)`` with ``(h, w)`` the arrangement's map size, to the same, or
    to ``(batch, size**2 * channels, h / size, w / size)`` where windows are folded.
    Under autocast products are those of its type; weights stay what they are.
    Cost: n multiplications an entry for slices of n entries.

    Raises:
        ValueError: channels that cannot be cut so; ``absolute`` outside [0, n].

    Example:
        >>> from unitmargin.layers.slices import Windows
        >>> layer = OrthogonalMixing(Windows((4, 4), 2), channels=3)
        >>> bool((layer.raw @ layer.raw.mT - torch.eye(12)).abs().max() < 1e-6)
        True
    """

    def __init__(
        self,
        arrangement: Arrangement,
        channels: int,
        absolute: int | None = None,
        bias: bool = True,
    ) -> None:
        count, side = arrangement.stack(channels)
        chosen = round(ABSOLUTE * side) if absolute is None else absolute
        chosen = require_absolute(chosen, side)
        noise = torch.randn(count, side, side) * (ANGLE / (2.0 * side) ** 0.5)
        super().__init__(arrangement, polish(torch.eye(side) + noise - noise.mT), bias)
        self.absolute = chosen

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"absolute": self.absolute}

    def singular_values(self) -> Float[Tensor, " values"]:
        return singular_values(self.raw)

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch cc hh ww"]:
        typed = self.in_one_type(x)
        with torch.autocast(x.device.type, enabled=False):
            return mix(*typed, self.arrangement, self.absolute)

    def fix(self) -> Mixing:
        return self.stored(self.raw)

    def freeze(self) -> Mixing:
        """The deployed layer: the weights polished in float64."""
        return self.stored(polish(self.raw))

    def stored(self, weight: Float[Tensor, "stack n n"]) -> Mixing:
        """A fixed layer of this weight and this layer's bias, in the dtype of the weight."""
        kind = MIXINGS[type(self.arrangement)]
        bias = self.bias.detach().to(weight)
        return kind(weight.detach(), bias, self.absolute, **self.arrangement.configuration())

    def extra_repr(self) -> str:
        count, side, _ = self.raw.shape
        return f"{self.arrangement}, {count} x {side}, absolute={self.absolute}"
