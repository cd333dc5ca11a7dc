"""Weights of every magnitude brought to size 1."""

import torch
from jaxtyping import Float
from torch import Tensor

LIMITS = {torch.float32: 120.0, torch.float64: 1000.0}
"""Largest exponent of a factor, which a type holds as a normal number."""


def of_size_one(
    values: Float[Tensor, "*shape"], dim: int | tuple[int, ...] = ()
) -> Float[Tensor, "*shape"]:
    """The numbers times a power of two that brings the largest of them near 1, so that squares and
    their sums neither over- nor underflow.

    ``dim`` are the axes of the numbers that share a factor, by default all of them. Nothing is
    rounded but numbers so small beside the largest that they become denormal. A function that no
    positive factor changes has the same value, and its gradient comes back times the factor. Zeros
    keep the factor 1.

    Example:
        >>> of_size_one(torch.tensor([3e30, -4e30, 0.0])).abs().max().item() <= 2.0
        True
    """
    largest = values.detach().abs().amax(dim, keepdim=True)
    limit = LIMITS[values.dtype]
    exponent = torch.where(largest > 0.0, largest, 1.0).log2().floor().clamp(-limit, limit)
    return values * values.new_tensor(2.0).pow(-exponent)
