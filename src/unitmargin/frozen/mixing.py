"""Mixing layers of a deployed network: stored orthogonal matrices on slices of maps."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.sliced import SlicedLayer
from unitmargin.frozen.weighted import Errors
from unitmargin.layers.arithmetic import Affine, Arithmetic, gamma
from unitmargin.layers.bounds import LayerConstants
from unitmargin.layers.mixing import mix, require_absolute
from unitmargin.layers.singular_values import singular_values
from unitmargin.layers.slices import Arrangement, Folds, Groups, Positions, Shifts, Windows


class Mixing(SlicedLayer):
    """``|W x + b|`` on every slice of a map, absolute values of its first ``absolute`` outputs;
    see ``layers/mixing.py``.

    ``weight (stack, n, n)`` and ``bias (stack, n)``.

    Raises:
        ValueError: shapes that do not belong together, or ``absolute`` outside [0, n].
    """

    def __init__(
        self,
        weight: Float[Tensor, "stack n n"],
        bias: Float[Tensor, "stack n"],
        absolute: int,
        map_size: Sequence[int],
        **cut: int,
    ) -> None:
        square = weight.ndim == 3 and weight.shape[1] == weight.shape[2]
        if not square or bias.shape != weight.shape[:2] or not weight.numel():
            raise ValueError(
                "a mixing layer needs weight (stack, n, n) and bias (stack, n), got shapes "
                f"{tuple(weight.shape)} and {tuple(bias.shape)}; pass one bias a row"
            )
        super().__init__(weight, bias, map_size, cut)
        self.absolute = require_absolute(absolute, weight.shape[1])

    def configuration(self) -> dict[str, Any]:
        return {"absolute": self.absolute, **self.arrangement.configuration()}

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch cc hh ww"]:
        with torch.autocast(x.device.type, enabled=False):
            return mix(x, self.weight, self.bias, self.arrangement, self.absolute)

    def singular_values(self) -> Float[Tensor, " values"]:
        return singular_values(self.weight)

    def constants(self) -> LayerConstants:
        return self.weight_constants()

    def errors(self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic) -> Errors:
        """(8) for every slice: one dot product and one bias an output, in any order; absolute
        values are exact, and no further apart than their arguments."""
        side = self.weight.shape[1]
        terms = incoming * constants.absolute + Affine(constants.bias)
        outputs = self.slices * side
        error = terms * gamma(side + 1, arithmetic.unit)
        return error + arithmetic.underflow(side, outputs), terms

    def extra_repr(self) -> str:
        count, side, _ = self.weight.shape
        return f"{self.arrangement}, {count} x {side}, absolute={self.absolute}"


class WindowMixing(Mixing):
    """One matrix on all windows of a map."""

    kind, arranged = "window_mixing", Windows


class FoldMixing(Mixing):
    """One matrix on all windows of a map, each of which becomes a pixel."""

    kind, arranged = "fold_mixing", Folds


class ShiftMixing(Mixing):
    """One matrix on all pixels of a map, some channels of which have moved."""

    kind, arranged = "shift_mixing", Shifts


class PositionMixing(Mixing):
    """A matrix for every pixel of a map."""

    kind, arranged = "position_mixing", Positions


class GroupMixing(Mixing):
    """A matrix for every group of channels of a map."""

    kind, arranged = "group_mixing", Groups


MIXINGS: dict[type[Arrangement], type[Mixing]] = {
    layer.arranged: layer
    for layer in (WindowMixing, FoldMixing, ShiftMixing, PositionMixing, GroupMixing)
}
"""Deployed mixing layers by the arrangement of their slices."""
