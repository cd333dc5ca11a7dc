"""The pool of Euclidean norms, which keeps gradients' norms."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.foundation.numbers import require_whole
from unitmargin.layers.arithmetic import Affine, Arithmetic, gamma
from unitmargin.layers.bounds import ENTRIES, LayerConstants
from unitmargin.layers.contract import GNPLayer, require_maps

ROOT_ROUNDINGS = 5
"""Roundings of a norm beside half of one for each entry of its window, since the root halves those
of n - 1 additions, a square and two quotients: one more half than n has; two for the root, within a
unit in its last place; one for the product with the largest entry; and one for what underflows in
quotients and squares, of which one is 1."""


class L2Pool(GNPLayer):
    r"""Norms of disjoint ``size x size`` windows of each channel, :math:`y = \|x_{window}\|`; GNP.

    Each row of the Jacobian is the unit vector :math:`x_{window} / y` and rows do not overlap, so
    :math:`J J^T = I`; for a window of zeros it is that of the average pool, all entries 1 / size.
    A window is divided by its largest entry first, so no square overflows or is lost.
    Shapes: ``(batch, c, size*h, size*w)`` to ``(batch, c, h, w)``, in the dtype of the input.
    Cost: a few passes over the map, nothing saved but the input.
    Source: LipNeXt (its pooling).

    Raises:
        ValueError: ``size`` does not divide both sides of the map.

    Example:
        >>> L2Pool(2)(torch.tensor([[[[3e-200, 0.0], [4e-200, 0.0]]]], dtype=torch.float64)).item()
        5e-200
    """

    kind = "l2_pool"

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
                f"a pool of norms needs a map that is a multiple of {self.size} on both sides, got "
                f"{height} x {width}; resize or crop the input"
            )
        with torch.autocast(x.device.type, enabled=False):
            norms: Tensor = _WindowNorms.apply(x, self.size)  # type: ignore[no-untyped-call]
        return norms

    def errors(
        self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic
    ) -> tuple[Affine, Affine]:
        """(21): half a rounding for each entry of a window and some more; squares sum to at most
        the number of entries."""
        entries = self.size**2
        error = incoming * gamma((entries + 1) // 2 + ROOT_ROUNDINGS, arithmetic.unit)
        return error + arithmetic.underflow(1, ENTRIES), Affine(float(entries))


class _WindowNorms(torch.autograd.Function):
    """Norms of windows; the derivative divides by the largest entry too, so that it is a unit
    vector wherever the norm is a number, and is one at zero."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, size: int) -> Tensor:
        largest, ratios = _scaled(_windows(x, size))
        return (largest * _norms(ratios))[:, :, :, 0, :, 0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        x, ctx.size = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (x,) = ctx.saved_tensors
        largest, ratios = _scaled(_windows(x, ctx.size))
        ratios = ratios + (largest == 0)  # a window of zeros counts as one of ones
        shares = gradients[0][:, :, :, None, :, None] / _norms(ratios)
        return (shares * ratios).reshape(x.shape), None


def _windows(x: Tensor, size: int) -> Float[Tensor, "batch c hh size ww size"]:
    height, width = x.shape[2] // size, x.shape[3] // size
    windows: Tensor = x.unflatten(3, (width, size)).unflatten(2, (height, size))
    return windows


def _scaled(windows: Tensor) -> tuple[Tensor, Tensor]:
    """The largest modulus of each window, and its entries divided by that, unless it is 0."""
    largest = windows.abs().amax(5, keepdim=True).amax(3, keepdim=True)
    return largest, windows / torch.where(largest == 0, 1.0, largest)


def _norms(ratios: Tensor) -> Tensor:
    norms: Tensor = ratios.square().sum(5, keepdim=True).sum(3, keepdim=True).sqrt()
    return norms
