"""The dense layer of a deployed network: a stored weight and bias."""

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.spectral import absolute_norm_bound, spectral_norm_bound
from unitmargin.frozen.weighted import Errors, WeightedLayer
from unitmargin.layers.arithmetic import Affine, Arithmetic, gamma, norm_bounds
from unitmargin.layers.bounds import LayerConstants
from unitmargin.layers.contract import require_vectors
from unitmargin.layers.singular_values import singular_values


class Dense(WeightedLayer):
    """``W x + b`` with stored ``weight (out, in)`` and ``bias (out,)``."""

    kind = "dense"
    weight: Tensor
    bias: Tensor

    def __init__(self, weight: Float[Tensor, "out in"], bias: Float[Tensor, " out"]) -> None:
        super().__init__()
        if weight.ndim != 2 or bias.shape != weight.shape[:1] or 0 in weight.shape:
            raise ValueError(
                "a dense layer needs weight (out, in) and bias (out,), got shapes "
                f"{tuple(weight.shape)} and {tuple(bias.shape)}; pass one bias a row"
            )
        self.register_buffer("weight", weight.contiguous())
        self.register_buffer("bias", bias)

    def forward(self, x: Float[Tensor, "batch in"]) -> Float[Tensor, "batch out"]:
        require_vectors(x)
        with torch.autocast(x.device.type, enabled=False):
            return torch.nn.functional.linear(x, self.weight, self.bias)

    @property
    def size(self) -> tuple[int, int]:
        return self.weight.shape[0], self.weight.shape[1]

    def singular_values(self) -> Float[Tensor, " values"]:
        return singular_values(self.weight)

    def constants(self) -> LayerConstants:
        bias, block = float(norm_bounds(self.bias[None])), self.weight[None]
        return LayerConstants(spectral_norm_bound(block), absolute_norm_bound(block), bias)

    def errors(self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic) -> Errors:
        """(8): one dot product and one bias an output, in any order."""
        outputs, inputs = self.size
        terms = incoming * constants.absolute + Affine(constants.bias)
        error = terms * gamma(inputs + 1, arithmetic.unit)
        return error + arithmetic.underflow(inputs, outputs), terms

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}"
