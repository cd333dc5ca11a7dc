"""Layers without a trainable weight: the same object serves in training and in deployment."""

from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn


class FixedLayer(nn.Module):
    """A layer that a frozen network may hold: it knows its name, its configuration and its norm.

    ``norm()`` is the Lipschitz constant of the layer in the l2 norm; a rearrangement, a pooling
    over disjoint windows and a GNP activation have norm exactly 1, which is the default.
    ``gnp`` says whether ``J J^T = I`` is promised almost everywhere; the default promises
    nothing beyond the norm.
    """

    kind: ClassVar[str]

    @property
    def gnp(self) -> bool:
        return False

    def configuration(self) -> dict[str, Any]:
        """The arguments, as JSON values, that rebuild the layer (tensors excluded)."""
        return {}

    @classmethod
    def rebuild(cls, configuration: dict[str, Any], tensors: dict[str, Tensor]) -> "FixedLayer":
        """Inverse of ``configuration()`` and of the layer's state dictionary."""
        return cls(**configuration, **tensors)

    def norm(self) -> float:
        return 1.0

    def rounding(self, unit: float) -> float:
        """Largest error of one evaluation, relative to the norm of the layer's input, in
        arithmetic with the given unit roundoff; 0 for layers that move and compare numbers only.

        A layer without this statement is not certified: its error is unknown.
        """
        raise ValueError(
            f"{type(self).__name__} states no rounding error, so its network has no sound radius; "
            "define its rounding(unit) method"
        )


class GNPLayer(FixedLayer):
    """A fixed layer with ``J J^T = I`` almost everywhere."""

    @property
    def gnp(self) -> bool:
        return True


class ExactLayer(GNPLayer):
    """A GNP layer that moves, compares and negates numbers: nothing is rounded."""

    def rounding(self, unit: float) -> float:
        return 0.0


class Flatten(ExactLayer):
    """Concatenate all axes but the first; a permutation of entries, hence GNP."""

    kind = "flatten"

    def forward(self, x: Float[Tensor, "batch *features"]) -> Float[Tensor, "batch flat"]:
        return x.flatten(1)


class PixelUnshuffle(ExactLayer):
    """Move each ``factor x factor`` block of pixels into channels; a permutation, hence GNP.

    Shapes: ``(batch, c, factor*h, factor*w)`` to ``(batch, factor**2 * c, h, w)``.
    Source: the paper's appendix, section "The PixelUnshuffle is a gradient norm preserving layer".
    """

    kind = "pixel_unshuffle"

    def __init__(self, factor: int = 2) -> None:
        super().__init__()
        self.factor = factor

    def configuration(self) -> dict[str, Any]:
        return {"factor": self.factor}

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch cc hh ww"]:
        if x.numel() == 0:
            # torch leaves the shape of an empty batch as it is.
            batch, channels, height, width = x.shape
            factor = self.factor
            return x.new_empty(batch, channels * factor**2, height // factor, width // factor)
        return nn.functional.pixel_unshuffle(x, self.factor)


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
        self.size = size

    def configuration(self) -> dict[str, Any]:
        return {"size": self.size}

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch c size size"]:
        height, width = x.shape[-2:]
        if height % self.size or width % self.size:
            raise ValueError(
                f"max pool to {self.size} x {self.size} needs a map that is a multiple of "
                f"{self.size} on both sides, got {height} x {width}; resize or crop the input"
            )
        window = (height // self.size, width // self.size)
        return nn.functional.max_pool2d(x, window, window)


class ScaledAveragePool(GNPLayer):
    r"""Sum over disjoint ``size x size`` windows divided by ``size``; GNP.

    Each row of the Jacobian has :math:`s^2` entries :math:`1/s` and rows do not overlap, so
    :math:`J J^T = I`. With ``size=2`` it is ``AvgPool2d(2, divisor_override=2)``.
    Shapes: ``(batch, c, size*h, size*w)`` to ``(batch, c, h, w)``.
    Source: Trockman, Kolter, arXiv 2104.07167, public code.

    Raises:
        ValueError: ``size`` does not divide both sides of the map.

    Example:
        >>> ScaledAveragePool(2)(torch.ones(1, 1, 2, 2)).item()
        2.0
    """

    kind = "scaled_average_pool"

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.size = size

    def configuration(self) -> dict[str, Any]:
        return {"size": self.size}

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch c hh ww"]:
        height, width = x.shape[-2:]
        if height % self.size or width % self.size:
            raise ValueError(
                f"average pool needs a map that is a multiple of {self.size} on both sides, got "
                f"{height} x {width}; resize or crop the input"
            )
        return nn.functional.avg_pool2d(x, self.size, divisor_override=self.size)


class Normalize(FixedLayer):
    r"""Shift and scale the input, channel by channel: :math:`(x - \mu) / \sigma`.

    Shapes: ``(batch, channels, ...)`` to the same; ``mean`` and ``std`` have one entry a channel.
    Guarantee: Lipschitz constant ``1 / min(std)``, which enters every certificate, so radii stay
    in the units of ``x``. With equal ``std`` entries the layer is GNP up to that one factor; with
    unequal ones (the paper's Std.Norm) it is not.
    Source: the paper, section 5 (Std.Norm against Raw).

    Raises:
        ValueError: shapes differ, or an entry of ``std`` is not positive and finite.

    Example:
        >>> Normalize(torch.zeros(3), torch.full((3,), 0.25)).norm()
        4.0
    """

    kind = "normalize"
    mean: Tensor
    std: Tensor

    def __init__(self, mean: Float[Tensor, " c"], std: Float[Tensor, " c"]) -> None:
        super().__init__()
        if mean.shape != std.shape or mean.ndim != 1:
            raise ValueError(
                "mean and std need one entry a channel each, got shapes "
                f"{tuple(mean.shape)} and {tuple(std.shape)}; pass two vectors of equal length"
            )
        if not bool(torch.isfinite(std).all() and torch.isfinite(mean).all() and (std > 0).all()):
            raise ValueError(
                f"std must be positive and all entries finite, got mean={mean.tolist()}, "
                f"std={std.tolist()}; drop constant channels or use centring alone"
            )
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, x: Float[Tensor, "batch c *space"]) -> Float[Tensor, "batch c *space"]:
        if x.shape[1] != len(self.mean):
            raise ValueError(
                f"x must have {len(self.mean)} channels, one a mean, got {x.shape[1]}; build the "
                "normalisation from inputs of this shape"
            )
        shape = (1, -1) + (1,) * (x.ndim - 2)
        return (x - self.mean.view(shape)) / self.std.view(shape)

    def norm(self) -> float:
        return 1.0 / float(self.std.double().min())


NORMALIZATIONS = ("none", "centre", "scalar", "channel")


def normalize_from(inputs: Float[Tensor, "samples c *space"], mode: str) -> Normalize:
    """Build the input normalisation of the given mode from the training inputs.

    Modes: ``none`` (mean 0, std 1), ``centre`` (channel means, std 1), ``scalar`` (channel means
    and one standard deviation for all channels), ``channel`` (the paper's Std.Norm).

    Raises:
        ValueError: unknown mode, or a channel of zero variance under ``channel``.
    """
    if mode not in NORMALIZATIONS:
        raise ValueError(
            f"normalization must be one of {', '.join(NORMALIZATIONS)}, got {mode!r}; choose one"
        )
    channels = inputs.shape[1]
    by_channel = inputs.double().transpose(0, 1).reshape(channels, -1)
    mean, std = torch.zeros(channels), torch.ones(channels)
    if mode != "none":
        mean = by_channel.mean(1).float()
    if mode == "scalar":
        centred = by_channel - by_channel.mean(1, keepdim=True)
        std = centred.square().mean().sqrt().float().expand(channels).clone()
    if mode == "channel":
        std = by_channel.std(1, correction=0).float()
    return Normalize(mean, std)
