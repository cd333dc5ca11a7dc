r"""Every slice of a map with some directions reflected: a residual that keeps gradients' norms.

The evaluation that trainable and deployed reflections share: two products, one pass.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.layers.slices import Arrangement

Maps = Float[Tensor, "batch c h w"]
Weights = Float[Tensor, "stack k n"]
Biases = Float[Tensor, "stack k"]


def reflect(
    x: Maps, weight: Weights, bias: Biases, arrangement: Arrangement
) -> Float[Tensor, "batch cc hh ww"]:
    r""":math:`y_s = x_s - 2 W_s^T \max(W_s x_s + b_s, 0)` for every slice s.

    Evaluated in the type of ``x``; the gradient of a weight has the weight's own. Saved are ``x``
    and the k positive parts of each slice. Cost: two products with each matrix, four more in the
    backward pass, a copy of the map on either side.
    """
    arrangement.require_maps(x)
    output: Tensor = _Reflect.apply(x, weight, bias, arrangement)[0]  # type: ignore[no-untyped-call]
    return output


class _Reflect(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        x: Tensor, weight: Tensor, bias: Tensor, arrangement: Arrangement
    ) -> tuple[Tensor, Tensor]:
        slices, matrix = arrangement.cut(x), weight.to(x.dtype)
        shift = bias.to(x.dtype)[:, None, :]
        positive = torch.baddbmm(shift, slices, matrix.mT).relu_()
        reflected = torch.baddbmm(slices, positive, matrix, alpha=-2.0)
        return arrangement.place(reflected, x.shape[1]), positive

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        x, weight, bias, ctx.arrangement = inputs
        ctx.save_for_backward(x, weight, output[1])
        ctx.set_materialize_grads(False)
        ctx.bias_type = bias.dtype

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        x, weight, positive = ctx.saved_tensors
        matrix = weight.to(positive.dtype)
        if gradients[0] is None:
            gradient = positive.new_zeros(*positive.shape[:2], matrix.shape[2])
        else:
            gradient = ctx.arrangement.unplace(gradients[0])
        through = torch.bmm(gradient, matrix.mT)
        if gradients[1] is not None:  # of a second derivative, in which the positive parts move too
            through = through - 0.5 * gradients[1]
        through = torch.where(positive > 0, through, 0.0)
        of_x = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            back = torch.baddbmm(gradient, through, matrix, alpha=-2.0)
            of_x = ctx.arrangement.uncut(back, x.shape[1])
        if ctx.needs_input_grad[1]:
            both = torch.bmm(positive.mT, gradient)
            both = torch.baddbmm(both, through.mT, ctx.arrangement.cut(x), beta=-2.0, alpha=-2.0)
            of_weight = both.to(weight.dtype)
        if ctx.needs_input_grad[2]:
            twos = through.new_full((1, 1, 1), -2.0).expand(len(through), 1, through.shape[1])
            of_bias = torch.bmm(twos, through)[:, 0].to(ctx.bias_type)
        return of_x, of_weight, of_bias, None
