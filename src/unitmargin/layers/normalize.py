"""The input normalisation, whose constant enters every certificate."""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.foundation.choice import require_choice, require_kind
from unitmargin.foundation.tensors import makes_numbers
from unitmargin.layers.arithmetic import UP, Affine, Arithmetic, gamma, product_up
from unitmargin.layers.bounds import ENTRIES, LayerConstants, LayerRounding
from unitmargin.layers.contract import FixedLayer, Gains
from unitmargin.layers.promises import SCALING


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
    promise = SCALING
    normalises = True
    mean: Tensor
    std: Tensor

    def __init__(self, mean: Float[Tensor, " c"], std: Float[Tensor, " c"]) -> None:
        super().__init__()
        for name, given in (("mean", mean), ("std", std)):
            require_kind(name, given, Tensor, "pass torch.tensor([...]), one entry a channel")
        if mean.shape != std.shape or mean.ndim != 1:
            raise ValueError(
                "mean and std need one entry a channel each, got shapes "
                f"{tuple(mean.shape)} and {tuple(std.shape)}; pass two vectors of equal length"
            )
        # Copies: who writes into their own would change a network, and files refuse shared memory.
        self.register_buffer("mean", _floating(mean).clone())
        self.register_buffer("std", _floating(std).clone())
        self.require_statistics()

    def require_statistics(self) -> None:
        """Raise unless it can divide by its numbers, which may have been changed."""
        mean, std = self.mean, self.std
        if std.is_meta or not makes_numbers():  # shapes alone
            return
        if not bool(torch.isfinite(std).all() and torch.isfinite(mean).all() and (std > 0).all()):
            raise ValueError(
                f"std must be positive and all entries finite, got mean={mean.tolist()}, "
                f"std={std.tolist()}; drop constant channels or use centring alone"
            )

    def forward(self, x: Float[Tensor, "batch c *space"]) -> Float[Tensor, "batch c *space"]:
        if x.shape[1] != len(self.mean):
            raise ValueError(
                f"x must have {len(self.mean)} channels, one a mean, got {x.shape[1]}; build the "
                "normalisation from inputs of this shape"
            )
        shape = (1, -1) + (1,) * (x.ndim - 2)
        return (x - self.mean.view(shape)) / self.std.view(shape)

    def freeze(self) -> FixedLayer:
        self.require_statistics()
        return self

    def norm(self) -> float:
        return 1.0 / float(self.std.double().min())

    def gains(self, inner: Sequence[float] | None = None) -> Gains:
        scales = 1.0 / self.std.double()
        return Gains(float(scales.min()), float(scales.max()))

    def constants(self) -> LayerConstants:
        return LayerConstants(product_up(self.norm(), UP))

    def bound_rounding(
        self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic
    ) -> LayerRounding:
        """(7): norms are those of the normalised input, each entry of which meets two roundings;
        what the difference loses to underflow is divided as well. Difference and raw input are as
        large as the largest deviation makes them."""
        lost = arithmetic.underflow(1, ENTRIES) * (1.0 + constants.norm)
        error = (incoming * gamma(2, arithmetic.unit) + lost) * UP
        output = (incoming + error) * UP
        widest, farthest = (float(part.double().abs().max()) for part in (self.std, self.mean))
        raw = incoming * widest + Affine(farthest)
        largest = raw + raw + output
        return LayerRounding(self.kind, constants.norm, error, output, largest, error)


def _floating(statistics: Float[Tensor, " c"]) -> Float[Tensor, " c"]:
    """The numbers in their type, whole ones in the default type."""
    whole = not statistics.is_floating_point()
    return statistics.to(torch.get_default_dtype()) if whole else statistics


NORMALIZATIONS = ("none", "centre", "scalar", "channel")


def normalize_from(
    batches: Iterable[Float[Tensor, "_ c *space"]], channels: int, mode: str
) -> Normalize:
    """Build the input normalisation of the given mode from the training inputs, read in batches.

    Modes: ``none`` (mean 0, std 1; nothing is read), ``centre`` (channel means, std 1), ``scalar``
    (channel means and one standard deviation for all channels), ``channel`` (the paper's Std.Norm).

    Guarantee: computed in float64 and rounded to float32, whatever the order and the batches; the
    memory is that of one batch.

    Raises:
        ValueError: unknown mode, no inputs, another number of channels, or a channel of zero
            variance under ``channel``.
    """
    require_choice("normalization", mode, NORMALIZATIONS)
    std = torch.ones(channels)
    if mode == "none":
        return Normalize(torch.zeros(channels), std)
    mean, variance = _moments(batches, channels)
    if mode == "scalar":
        std = variance.mean().sqrt().float().expand(channels).clone()
    if mode == "channel":
        std = variance.sqrt().float()
    return Normalize(mean.float(), std)


def _moments(batches: Iterable[Tensor], channels: int) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel: moments of batches, merged (Chan, Golub, LeVeque 1979)."""
    count = 0
    origin, mean, squares = torch.zeros(3, channels, 1, dtype=torch.float64)
    for batch in batches:
        if len(batch) == 0:
            continue
        if batch.shape[1] != channels:
            raise ValueError(
                f"batches must have {channels} channels, got shape {tuple(batch.shape)}; pass the "
                "channels of the inputs"
            )
        columns = batch.transpose(0, 1).flatten(1).double().cpu()
        if count == 0:
            # Measured from one of its values, a constant channel has a variance of exactly zero.
            origin = columns[:, :1].clone()
        columns = columns - origin
        own, total = columns.mean(1, keepdim=True), count + columns.shape[1]
        shift = own - mean
        squares = squares + (columns - own).square().sum(1, keepdim=True)
        squares = squares + shift.square() * (count * columns.shape[1] / total)
        mean, count = mean + shift * (columns.shape[1] / total), total
    if count == 0:
        raise ValueError("batches must hold at least one input, got none; pass the training inputs")
    return (origin + mean)[:, 0], squares[:, 0] / count
