r"""Every slice of a map times an orthogonal matrix, a bias, and absolute values of some outputs.

The evaluation that trainable and deployed mixing layers share: one product, one pass.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.layers.slices import Arrangement

Maps = Float[Tensor, "batch c h w"]
Weights = Float[Tensor, "stack n n"]
Biases = Float[Tensor, "stack n"]


def mix(
    x: Maps, weight: Weights, bias: Biases, arrangement: Arrangement, absolute: int
) -> Float[Tensor, "batch cc hh ww"]:
    r""":math:`y_s = a(W_s x_s + b_s)` for every slice s, with a the absolute value of the first
    ``absolute`` outputs.

    Evaluated in the type of ``x``; the gradient of a weight has the weight's own. The derivative of
    an absolute value is 1 or -1 everywhere, by the sign bit, so J J^T = I holds at zeros too.
    Cost: one product with each matrix, a copy of the map on either side, no other pass.
    """
    arrangement.require_maps(x)
    output: Tensor = _Mix.apply(x, weight, bias, arrangement, absolute)[0]  # type: ignore[no-untyped-call]
    return output


SIGNS = {
    torch.bfloat16: (torch.int16, -(2**15)),
    torch.float16: (torch.int16, -(2**15)),
    torch.float32: (torch.int32, -(2**31)),
    torch.float64: (torch.int64, -(2**63)),
}
"""Integers of the width of a floating-point type, and the one whose only bit is the sign."""


class _Mix(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        x: Tensor, weight: Tensor, bias: Tensor, arrangement: Arrangement, absolute: int
    ) -> tuple[Tensor, Tensor]:
        shift = bias.to(x.dtype)[:, None, :]
        mixed = torch.baddbmm(shift, arrangement.cut(x), weight.to(x.dtype).mT)
        folded = mixed[..., :absolute]
        integer, sign = SIGNS[x.dtype]
        signs = folded.view(integer) & sign
        folded.abs_()
        return arrangement.place(mixed, x.shape[1]), signs

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        x, weight, bias, ctx.arrangement, ctx.absolute = inputs
        ctx.save_for_backward(x, weight, output[1])
        ctx.mark_non_differentiable(output[1])
        ctx.bias_type = bias.dtype

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        x, weight, signs = ctx.saved_tensors
        # A copy: what autograd hands over may be read by others.
        gradient = ctx.arrangement.unplace(gradients[0]).clone()
        gradient.view(signs.dtype)[..., : ctx.absolute].bitwise_xor_(signs)
        of_x = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            back = torch.bmm(gradient, weight.to(gradient.dtype))
            of_x = ctx.arrangement.uncut(back, x.shape[1])
        if ctx.needs_input_grad[1]:
            of_weight = torch.bmm(gradient.mT, ctx.arrangement.cut(x)).to(weight.dtype)
        if ctx.needs_input_grad[2]:
            ones = gradient.new_ones(1, 1, 1).expand(gradient.shape[0], 1, gradient.shape[1])
            of_bias = torch.bmm(ones, gradient)[:, 0].to(ctx.bias_type)
        return of_x, of_weight, of_bias, None, None
