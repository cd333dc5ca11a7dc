"""Maps cut into slices, with the derivative that placing them back is."""

from typing import Any

import torch
from torch import Tensor

from unitmargin.layers.slices import Arrangement, Maps, Slices


def cut_maps(x: Maps, arrangement: Arrangement) -> Slices:
    """The slices of maps, in memory as their shape alone says.

    Products of slices that lie otherwise are summed in other orders. Cutting is a permutation, so
    its derivative transposed is its inverse; what torch derives for a gather adds entries one by
    one.
    Cost: a copy of the map, forwards and backwards.
    """
    if not torch.is_grad_enabled():
        return _laid_out(x, arrangement)
    slices: Tensor = _Cut.apply(x, arrangement)  # type: ignore[no-untyped-call]
    return slices


def _laid_out(x: Maps, arrangement: Arrangement) -> Slices:
    slices = arrangement.cut(x)
    return slices.flatten().view(slices.shape)


class _Cut(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, arrangement: Arrangement) -> Tensor:
        return _laid_out(x, arrangement)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        x, ctx.arrangement = inputs
        ctx.channels = x.shape[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return ctx.arrangement.uncut(gradients[0], ctx.channels), None
