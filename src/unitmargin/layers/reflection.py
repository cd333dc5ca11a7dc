r"""Every slice of a map with some directions reflected: a residual that keeps gradients' norms.

The evaluation that trainable and deployed reflections share: two products, one pass.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.layers.cutting import cut_maps
from unitmargin.layers.slices import Arrangement, Slices

Maps = Float[Tensor, "batch c h w"]
Weights = Float[Tensor, "stack k n"]
Biases = Float[Tensor, "stack k"]


def reflect(
    x: Maps, weight: Weights, bias: Biases, arrangement: Arrangement
) -> Float[Tensor, "batch cc hh ww"]:
    r""":math:`y_s = x_s - 2 W_s^T \max(W_s x_s + b_s, 0)` for every slice s.

    All of one type. The output is the same, bit for bit, however ``x`` lies in memory. Saved for
    the backward pass are the slices and the k positive parts of each.
    Cost: two products with each matrix, four more backwards, a copy of the map on either side.

    Raises:
        ValueError: no maps of this arrangement and weight.
    """
    arrangement.require_maps(x, arrangement.channels(weight.shape[0], weight.shape[2]))
    slices = cut_maps(x, arrangement)
    if not torch.is_grad_enabled():
        reflected, _ = _products(slices, weight, bias)
        return arrangement.place(reflected, x.shape[1])
    output: Tensor = _Reflect.apply(slices, weight, bias, arrangement, x.shape[1])[0]  # type: ignore[no-untyped-call]
    return output


def _products(
    slices: Slices, weight: Weights, bias: Biases
) -> tuple[Slices, Float[Tensor, "stack rows k"]]:
    """Reflected slices, and the positive parts of their coordinates."""
    positive = torch.baddbmm(bias[:, None, :], slices, weight.mT).relu_()
    return torch.baddbmm(slices, positive, weight, alpha=-2.0), positive


class _Reflect(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        slices: Tensor, weight: Tensor, bias: Tensor, arrangement: Arrangement, channels: int
    ) -> tuple[Tensor, Tensor]:
        reflected, positive = _products(slices, weight, bias)
        return arrangement.place(reflected, channels), positive

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        slices, weight, _, ctx.arrangement, _ = inputs
        ctx.save_for_backward(slices, weight, output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        slices, weight, positive = ctx.saved_tensors
        if gradients[0] is None:
            gradient = positive.new_zeros(*positive.shape[:2], weight.shape[2])
        else:
            gradient = ctx.arrangement.unplace(gradients[0])
        through = torch.bmm(gradient, weight.mT)
        if gradients[1] is not None:  # in a second derivative, where the positive parts move too
            through = through - 0.5 * gradients[1]
        through = through * (positive > 0)
        of_slices = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            of_slices = torch.baddbmm(gradient, through, weight, alpha=-2.0)
        if ctx.needs_input_grad[1]:
            both = torch.bmm(positive.mT, gradient)
            of_weight = torch.baddbmm(both, through.mT, slices, beta=-2.0, alpha=-2.0)
        if ctx.needs_input_grad[2]:
            twos = through.new_full((1, 1, 1), -2.0).expand(len(through), 1, through.shape[1])
            of_bias = torch.bmm(twos, through)[:, 0]
        return of_slices, of_weight, of_bias, None, None
