"""What the inputs and labels of samples have to be."""

import math

import torch
from torch import Tensor

BLOCK = 2**26
"""Bytes of stored inputs that are looked at together where all of them are."""


def require_inputs(inputs: Tensor) -> None:
    """Raise a ValueError unless inputs have a type and a shape that samples have."""
    if inputs.dtype not in (torch.uint8, torch.float32):
        raise ValueError(
            f"inputs must be uint8 or float32, got {inputs.dtype}; convert them to float32"
        )
    if inputs.ndim < 2 or inputs.numel() == 0:
        step = "add the batch axis: inputs[None]" if inputs.numel() else "pass a sample at least"
        raise ValueError(
            f"inputs must have shape (n, *shape) and hold at least one number, got "
            f"{tuple(inputs.shape)}; {step}"
        )


def require_finite(inputs: Tensor) -> None:
    """Raise a ValueError unless all numbers are finite, as which float32 holds them."""
    if inputs.dtype != torch.float32:
        return
    size = max(1, BLOCK // (inputs.element_size() * math.prod(inputs.shape[1:])))
    for start in range(0, len(inputs), size):
        block = inputs[start : start + size]
        if not bool(block.isfinite().all()):
            first = start + int((~block.flatten(1).isfinite().all(1)).nonzero()[0])
            raise ValueError(
                f"inputs must be finite in float32, got NaN or infinity in sample {first}; remove "
                "or repair it, or write it in a larger unit"
            )


def require_rows(rows: Tensor | None, inputs: Tensor) -> None:
    """Raise a ValueError unless rows are positions of inputs."""
    if rows is None:
        return
    if rows.dtype != torch.int64 or rows.ndim != 1 or len(rows) == 0:
        raise ValueError(
            f"rows must be int64 of shape (n,) with n >= 1, got {rows.dtype} of shape "
            f"{tuple(rows.shape)}; pass the positions of the chosen inputs"
        )
    if rows.device != inputs.device:
        raise ValueError(
            f"rows must be on {inputs.device}, where the inputs are, got {rows.device}; move them "
            "with rows.to(inputs.device)"
        )
    low, high = (int(end) for end in rows.aminmax())
    if low < 0 or high >= len(inputs):
        raise ValueError(
            f"rows must be from 0 to {len(inputs) - 1}, positions of inputs, got "
            f"{low if low < 0 else high}; leave it out"
        )


def require_labels(labels: Tensor, inputs: Tensor, count: int) -> None:
    """Raise a ValueError unless labels are class numbers, one a sample."""
    if labels.dtype != torch.int64 or labels.shape != (count,):
        raise ValueError(
            f"labels must be int64 of shape ({count},), one for each input, got "
            f"{labels.dtype} of shape {tuple(labels.shape)}; pass the number of each class"
        )
    if labels.device != inputs.device:
        raise ValueError(
            f"labels must be on {inputs.device}, where the inputs are, got {labels.device}; "
            "move them with labels.to(inputs.device)"
        )
    if int(labels.min()) < 0:
        raise ValueError(f"labels must be >= 0, got {int(labels.min())}; count classes from 0")
