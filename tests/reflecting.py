"""Reflections of slices from their definition, as one dense matrix for each piece."""

import torch
from jaxtyping import Float
from slicing import slices
from torch import Tensor

from unitmargin.frozen.reflection import REFLECTIONS, Reflection
from unitmargin.layers.slices import Arrangement


def orthonormal(count: int, rows: int, side: int) -> Float[Tensor, "count rows side"]:
    square = torch.randn(count, side, side, dtype=torch.float64)
    return torch.linalg.qr(square).Q[:, :rows].contiguous()


def parts(arrangement: Arrangement, channels: int) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, orthonormal rows, as many as half of a slice has entries, and biases in float64."""
    count, side = arrangement.stack(channels)
    x = torch.randn(3, channels, *arrangement.map_size, dtype=torch.float64)
    rows = (side + 1) // 2
    return x, orthonormal(count, rows, side), torch.randn(count, rows, dtype=torch.float64)


def reflection(arrangement: Arrangement, channels: int) -> Reflection:
    """A deployed layer of such parts, its biases small."""
    _, weight, bias = parts(arrangement, channels)
    kind, configuration = REFLECTIONS[type(arrangement)], arrangement.configuration()
    return kind(weight, 0.1 * bias, **configuration)


def reflected(
    flat: Tensor, weight: Tensor, bias: Tensor, arrangement: Arrangement, channels: int
) -> tuple[Tensor, Tensor]:
    """The image of one flat map, row by row, and the matrix of the piece on which it lies."""
    output, dense = torch.zeros_like(flat), torch.zeros(len(flat), len(flat), dtype=flat.dtype)
    for matrix, inside, outside in slices(arrangement, channels):
        image, piece = flat[inside].clone(), torch.eye(len(inside), dtype=flat.dtype)
        for row, shift in zip(weight[matrix], bias[matrix], strict=True):
            coordinate = row @ flat[inside] + shift
            if coordinate > 0:
                image -= 2.0 * coordinate * row
                piece -= 2.0 * torch.outer(row, row)
        output[outside] = image
        dense[torch.tensor(outside)[:, None], torch.tensor(inside)[None]] = piece
    return output, dense
