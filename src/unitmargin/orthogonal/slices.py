"""What trainable layers on slices share: an arrangement, a weight on the manifold, biases."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.layers.contract import ManifoldParameters, TrainableLayer
from unitmargin.layers.promises import GNP
from unitmargin.layers.slices import Arrangement


class OrthogonalSlices(TrainableLayer):
    """A layer whose parameter is its weight ``(stack, k, n)`` of orthonormal rows, for the slices
    that an arrangement cuts; biases start at zero."""

    promise = GNP

    bias: Tensor

    def __init__(
        self, arrangement: Arrangement, start: Float[Tensor, "stack k n"], bias: bool
    ) -> None:
        super().__init__()
        self.arrangement = arrangement
        self.raw = nn.Parameter(start.to(torch.get_default_dtype()).contiguous())
        if bias:
            self.bias = nn.Parameter(torch.zeros(start.shape[:2]))
        else:
            self.register_buffer("bias", torch.zeros(start.shape[:2]))

    def weight(self) -> Float[Tensor, "stack k n"]:
        return self.raw

    def manifold_parameters(self) -> ManifoldParameters:
        return ManifoldParameters(real=[self.raw])

    def settings(self) -> dict[str, Any]:
        return {"arrangement": self.arrangement}

    def in_one_type(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Input, weight and bias in the type of their products: that of autocast where it is on."""
        kind, dtype = x.device.type, self.raw.dtype
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else dtype
        return x.to(dtype), self.raw.to(dtype), self.bias.to(dtype)
