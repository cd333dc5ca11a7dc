r"""Every slice of a map times an orthogonal matrix, a bias, and absolute values of some outputs.

The evaluation that trainable and deployed mixing layers share: one product, one pass.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.foundation.numbers import require_whole
from unitmargin.layers.cutting import cut_maps
from unitmargin.layers.slices import Arrangement, Slices

Maps = Float[Tensor, "batch c h w"]
Weights = Float[Tensor, "stack n n"]
Biases = Float[Tensor, "stack n"]


def mix(
    x: Maps, weight: Weights, bias: Biases, arrangement: Arrangement, absolute: int
) -> Float[Tensor, "batch cc hh ww"]:
    r""":math:`y_s = a(W_s x_s + b_s)` for every slice s, with a the absolute value of the first
    ``absolute`` outputs.

    All of one type. The derivative of an absolute value is 1 or -1 everywhere, by the sign bit, so
    J J^T = I holds at zeros too. The output is the same, bit for bit, however ``x`` lies in memory.
    Cost: one product with each matrix, a copy of the map on either side, no other pass.

    Raises:
        ValueError: no maps of this arrangement and weight.
    """
    arrangement.require_maps(x, arrangement.channels(weight.shape[0], weight.shape[1]))
    slices = cut_maps(x, arrangement)
    if not torch.is_grad_enabled():
        mixed = _products(slices, weight, bias)
        mixed[..., :absolute].abs_()
        return arrangement.place(mixed, x.shape[1])
    output: Tensor = _Mix.apply(slices, weight, bias, arrangement, absolute, x.shape[1])[0]  # type: ignore[no-untyped-call]
    return output


def require_absolute(absolute: int, side: int) -> int:
    """How many outputs of a slice of ``side`` entries get absolute values; others are an error."""
    count = require_whole("absolute", absolute, 0, "give the outputs with absolute values")
    if count > side:
        raise ValueError(
            f"absolute must be at most the {side} entries of a slice, got {count}; pass how many "
            "outputs of a slice get absolute values"
        )
    return count


def _products(slices: Slices, weight: Weights, bias: Biases) -> Slices:
    return torch.baddbmm(bias[:, None, :], slices, weight.mT)


class _Mix(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        slices: Tensor,
        weight: Tensor,
        bias: Tensor,
        arrangement: Arrangement,
        absolute: int,
        channels: int,
    ) -> tuple[Tensor, Tensor]:
        mixed = _products(slices, weight, bias)
        folded = mixed[..., :absolute]
        signs = torch.ones_like(folded).copysign(folded)
        folded.abs_()
        return arrangement.place(mixed, channels), signs

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        slices, weight, _, ctx.arrangement, ctx.absolute, _ = inputs
        ctx.save_for_backward(slices, weight, output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        slices, weight, signs = ctx.saved_tensors
        placed = ctx.arrangement.unplace(gradients[0])
        folded, others = placed[..., : ctx.absolute], placed[..., ctx.absolute :]
        gradient = torch.cat((folded * signs, others), dim=-1)
        of_slices = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            of_slices = torch.bmm(gradient, weight)
        if ctx.needs_input_grad[1]:
            of_weight = torch.bmm(gradient.mT, slices)
        if ctx.needs_input_grad[2]:
            ones = gradient.new_ones(1, 1, 1).expand(gradient.shape[0], 1, gradient.shape[1])
            of_bias = torch.bmm(ones, gradient)[:, 0]
        return of_slices, of_weight, of_bias, None, None, None
