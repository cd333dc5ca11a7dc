"""Reflections of a deployed network: residuals on slices of maps, with stored orthonormal rows."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.sliced import SlicedLayer
from unitmargin.frozen.weighted import Errors
from unitmargin.layers.arithmetic import UP, Affine, Arithmetic, gamma, product_up
from unitmargin.layers.bounds import LayerConstants
from unitmargin.layers.reflection import reflect
from unitmargin.layers.singular_values import singular_values
from unitmargin.layers.slices import Arrangement, Folds, Groups, Positions, Shifts, Windows


class Reflection(SlicedLayer):
    r""":math:`x - 2 W^T \max(W x + b, 0)` on every slice of a map; see ``layers/reflection.py``.

    ``weight (stack, k, n)`` and ``bias (stack, k)`` with k <= n.

    Raises:
        ValueError: shapes that do not belong together.
    """

    def __init__(
        self,
        weight: Float[Tensor, "stack k n"],
        bias: Float[Tensor, "stack k"],
        map_size: Sequence[int],
        **cut: int,
    ) -> None:
        shape = tuple(weight.shape)
        if len(shape) != 3 or bias.shape != shape[:2] or not 0 < shape[1] <= shape[2]:
            raise ValueError(
                "a reflection needs weight (stack, k, n) with k <= n and bias (stack, k), got "
                f"shapes {shape} and {tuple(bias.shape)}; pass one bias a row"
            )
        super().__init__(weight, bias, map_size, cut)

    def configuration(self) -> dict[str, Any]:
        return self.arrangement.configuration()

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch cc hh ww"]:
        with torch.autocast(x.device.type, enabled=False):
            return reflect(x, self.weight, self.bias, self.arrangement)

    def singular_values(self) -> Float[Tensor, " values"]:
        return reflected_values(self.weight)

    def constants(self) -> LayerConstants:
        """(22): S, a and b of the weight, and what follows for the residual: its Lipschitz
        constant, and its output at zero as its bias."""
        inner = self.weight_constants()
        steep = product_up(max(1.0, 2.0 * product_up(inner.norm, inner.norm) - 1.0), UP)
        shift = product_up(2.0 * inner.norm, inner.bias)
        return LayerConstants(steep, 0.0, shift, (inner,))

    def errors(self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic) -> Errors:
        """(23): the first product as (8), its error doubled on the way back; then a sum of k
        products and the input, in any order. The positive part is exact and moves no two numbers
        apart, and doubling is exact."""
        (inner,) = constants.branch
        _, rows, side = self.weight.shape
        slices, unit = self.slices, arithmetic.unit
        first = incoming * inner.absolute + Affine(inner.bias)
        error = first * gamma(side + 1, unit) + arithmetic.underflow(side, slices * rows)
        hidden = incoming * inner.norm + Affine(inner.bias) + error
        terms = incoming + hidden * (2.0 * inner.absolute)
        lost = arithmetic.underflow(2 * rows, slices * side)
        total = error * (2.0 * inner.norm) + terms * gamma(rows + 1, unit) + lost
        return total, first + hidden * 2.0 + terms

    def extra_repr(self) -> str:
        count, rows, side = self.weight.shape
        return f"{self.arrangement}, {count} x {rows} of {side}"


def reflected_values(weight: Float[Tensor, "stack k n"]) -> Float[Tensor, " values"]:
    """Those of the Jacobian where all rows reflect, ``|1 - 2 s^2|`` for singular values s of W, and
    1, where none does; and 0 where ``1 - 2 s^2`` takes both signs. No piece has one beyond them:
    the Gram matrices of some rows have eigenvalues between those of all."""
    values = 1.0 - 2.0 * singular_values(weight).square()
    ends = [0.0, 1.0] if float(values.min()) <= 0.0 <= float(values.max()) else [1.0]
    return torch.cat((values.abs(), values.new_tensor(ends))).sort().values


class WindowReflection(Reflection):
    """One matrix on all windows of a map."""

    kind, arranged = "window_reflection", Windows


class FoldReflection(Reflection):
    """One matrix on all windows of a map, each of which becomes a pixel."""

    kind, arranged = "fold_reflection", Folds


class ShiftReflection(Reflection):
    """One matrix on all pixels of a map, some channels of which have moved."""

    kind, arranged = "shift_reflection", Shifts


class PositionReflection(Reflection):
    """A matrix for every pixel of a map."""

    kind, arranged = "position_reflection", Positions


class GroupReflection(Reflection):
    """A matrix for every group of channels of a map."""

    kind, arranged = "group_reflection", Groups


REFLECTIONS: dict[type[Arrangement], type[Reflection]] = {
    layer.arranged: layer
    for layer in (
        WindowReflection, FoldReflection, ShiftReflection, PositionReflection, GroupReflection,
    )
}  # fmt: skip
"""Deployed reflections by the arrangement of their slices."""
