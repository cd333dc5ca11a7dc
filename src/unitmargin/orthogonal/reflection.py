"""Residuals on slices of maps that keep gradients' norms, the weights on the manifold."""

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.foundation.numbers import require_whole
from unitmargin.frozen.reflection import REFLECTIONS, Reflection, reflected_values
from unitmargin.layers.reflection import reflect
from unitmargin.layers.slices import Arrangement
from unitmargin.orthogonal.polar import polish
from unitmargin.orthogonal.slices import OrthogonalSlices

SHARE = 0.25
"""Share of the directions of a slice that may be reflected, as of the outputs that get absolute
values in a mixing layer: a reflection is the absolute value of these directions, but for a sign."""


class OrthogonalReflection(OrthogonalSlices):
    r"""Reflection of slices, :math:`y_s = x_s - 2 W_s^T \max(W_s x_s + b_s, 0)` with
    :math:`W_s W_s^T = I` (GNP): a residual that is exactly orthogonal.

    The ``arrangement`` says how maps are cut into slices, which slices share a matrix, and where
    results are placed. The parameter is the weight; train it with ``build_optimizers``. It starts
    as random orthonormal rows, biases at zero: of ``rows`` directions those with a positive
    coordinate turn round, an eighth of a slice by default, and all others are kept, so the layer is
    near the identity and depth does not hurt.
    Proof: :math:`J_s = I - 2 W^T D W` with D diagonal of zeros and ones; :math:`(D W)(D W)^T = D`,
    so :math:`W^T D W` is a projection and :math:`J_s` symmetric with :math:`J_s^2 = I`; cutting and
    placing are permutations.
    Shapes: as :class:`unitmargin.orthogonal.mixing.OrthogonalMixing`.
    Under autocast products are those of its type; weights stay what they are.
    Cost: 2 k multiplications an entry for slices of n entries and k rows.
    Source: CPL (Meunier et al., 2022) with orthonormal rows, where its scale 2 / ``|W|^2`` is 2.

    Raises:
        ValueError: channels that cannot be cut so; ``rows`` outside [1, n].

    Example:
        >>> from unitmargin.layers.slices import Windows
        >>> layer = OrthogonalReflection(Windows((4, 4), 2), channels=3)
        >>> bool((layer.raw @ layer.raw.mT - torch.eye(3)).abs().max() < 1e-6)
        True
    """

    def __init__(
        self,
        arrangement: Arrangement,
        channels: int,
        rows: int | None = None,
        bias: bool = True,
    ) -> None:
        count, side = arrangement.stack(channels)
        chosen = max(1, round(SHARE * side)) if rows is None else rows
        chosen = require_whole("rows", chosen, 1, "leave it out for a quarter of a slice")
        if chosen > side:
            raise ValueError(
                f"rows must be at most the {side} entries of a slice, got {rows}; leave it out for "
                "a quarter of them"
            )
        start = torch.linalg.qr(torch.randn(count, side, chosen, dtype=torch.float64)).Q.mT
        super().__init__(arrangement, start, bias)

    def singular_values(self) -> Float[Tensor, " values"]:
        return reflected_values(self.raw)

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch cc hh ww"]:
        typed = self.in_one_type(x)
        with torch.autocast(x.device.type, enabled=False):
            return reflect(*typed, self.arrangement)

    def fix(self) -> Reflection:
        return self.stored(self.raw)

    def freeze(self) -> Reflection:
        """The deployed layer: the weights polished in float64."""
        return self.stored(polish(self.raw))

    def stored(self, weight: Float[Tensor, "stack k n"]) -> Reflection:
        """A fixed layer of this weight and this layer's bias, in the dtype of the weight."""
        kind = REFLECTIONS[type(self.arrangement)]
        bias = self.bias.detach().to(weight)
        return kind(weight.detach(), bias, **self.arrangement.configuration())

    def extra_repr(self) -> str:
        count, rows, side = self.raw.shape
        return f"{self.arrangement}, {count} x {rows} of {side}"
