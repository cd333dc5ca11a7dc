"""Data as users have them: samples, pairs of arrays, data sets and loaders of torch."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from unitmargin.data.samples import Samples
from unitmargin.foundation.failures import one_line
from unitmargin.foundation.numbers import FLOATING, Numbers, as_labels, as_tensor

ITEMS = 256
"""Samples of a torch data set that are joined at a time."""

Pair = tuple[Tensor, Tensor]
Given = Samples | tuple[Numbers, Numbers] | TorchDataset[Any] | DataLoader[Any]

KINDS = "Samples, a pair (inputs, labels), a torch Dataset or a DataLoader"


def as_samples(data: Given, what: str = "data") -> Samples:
    """Samples as they are, or made of what is given.

    Taken are a pair (inputs, labels) of tensors, arrays or data frames, a torch data set of such
    pairs for one sample, and a loader of such pairs for a batch; the latter two are read once and
    kept in memory. Inputs are of any floating dtype and are rounded to float32, labels are of any
    integer dtype; the scale is 1. ``what`` is the name of the data in messages.

    Raises:
        TypeError: anything else, and what is no tensor, array or data frame of numbers.
        ValueError: other dtypes, and what :class:`Samples` refuses.

    Example:
        >>> len(as_samples((torch.zeros(2, 3, dtype=torch.float64), torch.tensor([0, 1]))))
        2
    """
    if isinstance(data, Samples):
        return data
    if isinstance(data, TorchDataset | DataLoader):
        batches = list(read_batches(data, what))
        if not batches:
            raise ValueError(f"{what} must hold a sample at least, got none; add some")
        if len(shapes := {tuple(inputs.shape[1:]) for inputs, _ in batches}) > 1:
            first, other = sorted(shapes)[:2]
            raise ValueError(
                f"inputs of {what} must have one shape, got {first} and {other}; resize them"
            )
        inputs, labels = map(torch.cat, zip(*batches, strict=True))
    else:
        inputs, labels = as_pair(data, what)
    try:
        return Samples(inputs, labels)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def is_torch_data(data: object) -> bool:
    """Whether it is a data set or a loader of torch."""
    return isinstance(data, TorchDataset | DataLoader)


def read_batches(data: TorchDataset[Any] | DataLoader[Any], what: str) -> Iterator[Pair]:
    """The batches of a loader, or of a torch data set in its order, as float32 and int64.

    Raises:
        TypeError: batches that are no pairs (inputs, labels) of numbers.
        ValueError: other dtypes, or labels that are not one for each input.
    """
    loader = data if isinstance(data, DataLoader) else DataLoader(data, batch_size=ITEMS)
    batches = iter(loader)
    while True:
        try:
            batch = next(batches, None)
        except (TypeError, RuntimeError) as error:  # torch cannot join the samples
            raise TypeError(
                f"{what} must hold pairs (inputs, labels) of numbers of one shape, got: "
                f"{one_line(str(error))}; convert images with a transform such as ToTensor"
            ) from error
        if batch is None:
            return
        inputs, labels = as_pair(tuple(batch) if isinstance(batch, list) else batch, what)
        if labels.shape != inputs.shape[:1]:
            raise ValueError(
                f"labels of {what} must be one for each of the {len(inputs)} inputs of a batch, "
                f"got shape {tuple(labels.shape)}; yield the number of each class"
            )
        yield inputs, labels


def as_pair(data: object, what: str) -> Pair:
    """Inputs in float32 and labels in int64.

    Raises:
        TypeError: what is no pair, and what is no tensor, array or data frame of numbers.
        ValueError: other dtypes.
    """
    if not isinstance(data, tuple) or len(data) != 2:
        got = f"{len(data)} values" if isinstance(data, tuple) else type(data).__name__
        raise TypeError(
            f"{what} must be {KINDS}, got {got}; pass all inputs and labels of one split"
        )
    inputs = as_tensor(f"inputs of {what}", data[0])
    labels = as_labels(f"labels of {what}", data[1])
    if inputs.dtype not in FLOATING:
        raise ValueError(
            f"inputs of {what} must be of a floating dtype, got {inputs.dtype}; for bytes write "
            "Samples(inputs, labels, scale=255.0)"
        )
    return inputs.to(torch.float32), labels
