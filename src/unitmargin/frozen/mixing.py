"""Mixing layers of a deployed network: stored orthogonal matrices on slices of maps."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.spectral import absolute_norm_bound, in_chunks, spectral_norm_bound
from unitmargin.frozen.weighted import Errors, WeightedLayer
from unitmargin.layers.arithmetic import UP, Affine, Arithmetic, gamma, norm_bounds, product_up
from unitmargin.layers.bounds import LayerConstants
from unitmargin.layers.mixing import mix, require_absolute
from unitmargin.layers.singular_values import singular_values
from unitmargin.layers.slices import Arrangement, Folds, Groups, Positions, Shifts, Windows


class Mixing(WeightedLayer):
    """``|W x + b|`` on every slice of a map, absolute values of its first ``absolute`` outputs;
    see ``layers/mixing.py``.

    ``weight (stack, n, n)`` and ``bias (stack, n)``; how maps are cut is what the heirs differ in.

    Raises:
        ValueError: shapes that do not belong together, or ``absolute`` outside [0, n].
    """

    arranged: ClassVar[type[Arrangement]]
    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        weight: Float[Tensor, "stack n n"],
        bias: Float[Tensor, "stack n"],
        absolute: int,
        map_size: Sequence[int],
        **cut: int,
    ) -> None:
        super().__init__()
        square = weight.ndim == 3 and weight.shape[1] == weight.shape[2]
        if not square or bias.shape != weight.shape[:2] or not weight.numel():
            raise ValueError(
                "a mixing layer needs weight (stack, n, n) and bias (stack, n), got shapes "
                f"{tuple(weight.shape)} and {tuple(bias.shape)}; pass one bias a row"
            )
        count, side, _ = weight.shape
        self.absolute = require_absolute(absolute, side)
        # Its sides are judged there.
        self.arrangement = self.arranged(tuple(map_size), **cut)  # type: ignore[arg-type]
        self.channels = self.arrangement.channels(count, side)
        if self.channels < 1 or self.arrangement.stack(self.channels) != (count, side):
            raise ValueError(
                f"a mixing layer needs a weight of its arrangement, got {tuple(weight.shape)} for "
                f"{self.arrangement}; pass the arrangement that the weight was made for"
            )
        self.register_buffer("weight", weight.contiguous())
        self.register_buffer("bias", bias.contiguous())

    def configuration(self) -> dict[str, Any]:
        return {"absolute": self.absolute, **self.arrangement.configuration()}

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch cc hh ww"]:
        with torch.autocast(x.device.type, enabled=False):
            return mix(x, self.weight, self.bias, self.arrangement, self.absolute)

    @property
    def size(self) -> tuple[int, int]:
        return self.weight.shape[1], self.weight.shape[2]

    def singular_values(self) -> Float[Tensor, " values"]:
        return singular_values(self.weight)

    def constants(self) -> LayerConstants:
        """S and a are the largest of any matrix; b is that of all slices together."""
        chunks = in_chunks(self.weight)
        norm, absolute = (
            max(map(spectral_norm_bound, chunks)),
            max(map(absolute_norm_bound, chunks)),
        )
        served = self.arrangement.slices(self.channels) // len(self.weight)
        bias = product_up(float(norm_bounds(self.bias.flatten()[None])), served**0.5 * UP)
        return LayerConstants(norm, absolute, bias)

    def errors(self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic) -> Errors:
        """(8) for every slice: one dot product and one bias an output, in any order; absolute
        values are exact, and no further apart than their arguments."""
        side = self.weight.shape[1]
        terms = incoming * constants.absolute + Affine(constants.bias)
        outputs = self.arrangement.slices(self.channels) * side
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
