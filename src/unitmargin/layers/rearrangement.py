"""Layers that move and compare numbers: flattening, pixels into channels, more channels, maxima."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.foundation.numbers import require_whole
from unitmargin.layers.contract import ExactLayer, FixedLayer, Gains, require_maps
from unitmargin.layers.promises import ISOMETRY


class Flatten(ExactLayer):
    """Concatenate all axes but the first; a permutation of entries, hence GNP."""

    kind = "flatten"

    def forward(self, x: Float[Tensor, "batch *features"]) -> Float[Tensor, "batch flat"]:
        return x.flatten(1)


class PixelUnshuffle(ExactLayer):
    """Move each ``factor x factor`` block of pixels into channels; a permutation, hence GNP.

    Shapes: ``(batch, c, factor*h, factor*w)`` to ``(batch, factor**2 * c, h, w)``.
    Source: the paper's appendix, section "The PixelUnshuffle is a gradient norm preserving layer".

    Raises:
        ValueError: no map, or one that is not a multiple of ``factor``.
    """

    kind = "pixel_unshuffle"

    def __init__(self, factor: int = 2) -> None:
        super().__init__()
        self.factor = require_whole("factor", factor, 1, "give the side of a window")

    def configuration(self) -> dict[str, Any]:
        return {"factor": self.factor}

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch cc hh ww"]:
        require_maps(x)
        height, width = x.shape[2:]
        if height % self.factor or width % self.factor:
            raise ValueError(
                f"pixel unshuffle needs a map that is a multiple of {self.factor} on both sides, "
                f"got {height} x {width}; resize or crop the input"
            )
        if x.numel() == 0:
            # torch leaves the shape of an empty batch as it is.
            batch, channels, height, width = x.shape
            factor = self.factor
            return x.new_empty(batch, channels * factor**2, height // factor, width // factor)
        return nn.functional.pixel_unshuffle(x, self.factor)


class Widen(FixedLayer):
    """Channels of zeros behind those there are, ``factor`` times as many in all: an isometry.

    J^T J = I: distances stay what they are, and so does the Lipschitz constant 1. J J^T is a
    projection, so a network behind it is 1-Lipschitz and no signed distance classifier.

    Shapes: ``(batch, c, h, w)`` to ``(batch, factor * c, h, w)``.

    Raises:
        ValueError: no map.
    """

    kind, promise = "widen", ISOMETRY

    def __init__(self, factor: int = 2) -> None:
        super().__init__()
        self.factor = require_whole("factor", factor, 1, "give how many times as many channels")

    def configuration(self) -> dict[str, Any]:
        return {"factor": self.factor}

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch cc h w"]:
        require_maps(x)
        return nn.functional.pad(x, (0, 0, 0, 0, 0, (self.factor - 1) * x.shape[1]))

    def gains(self, inner: Sequence[float] | None = None) -> Gains:
        return Gains(1.0, 1.0)

    def rounding(self, unit: float) -> float:
        return 0.0


class MaxPool(ExactLayer):
    """Maximum over disjoint windows that tile the map down to ``size x size``; GNP.

    Each row of the Jacobian selects one entry, and no entry is selected twice: ``J J^T = I``.
    Source: the paper, section 4.1 (pooling) and the listing's ``AdaptiveMaxPool2d((2, 2))``.

    Raises:
        ValueError: the map is not a multiple of ``size`` (windows would overlap and break GNP).
    """

    kind = "max_pool"

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.size = require_whole("size", size, 1, "give the side of the map")

    def configuration(self) -> dict[str, Any]:
        return {"size": self.size}

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch c size size"]:
        require_maps(x)
        height, width = x.shape[-2:]
        if height % self.size or width % self.size:
            raise ValueError(
                f"max pool to {self.size} x {self.size} needs a map that is a multiple of "
                f"{self.size} on both sides, got {height} x {width}; resize or crop the input"
            )
        window = (height // self.size, width // self.size)
        return nn.functional.max_pool2d(x, window, window)
