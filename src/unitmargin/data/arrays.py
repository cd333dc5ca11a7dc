"""Data sets in one NumPy ``.npz`` file."""

import zipfile
import zlib
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from unitmargin.data.files import DataError
from unitmargin.data.samples import BYTES, Dataset, Samples
from unitmargin.foundation.files import write_aside

SPLITS = ("train", "test")
IMAGE_CHANNELS = (1, 3)

LAST_CHANNELS = (1, 3, 4)
"""Lengths of a last axis that are channels of bytes, where no other axis is as short."""

Arrays = dict[str, NDArray[Any]]


def npz(path: Path, name: str = "npz") -> Dataset:
    """The data set of a ``.npz`` file.

    Inputs of dtype uint8 get the scale 255, which puts them in [0, 1]; their channels may come last
    if only that axis has 1, 3 or 4 entries. Floating inputs are rounded to float32 and used as they
    are. An optional array ``classes`` names the classes; by default
    they are called "0", "1", ...

    Shapes: ``x_train`` and ``x_test`` are ``(n, channels, height, width)`` or ``(n, features)``,
    ``y_train`` and ``y_test`` integers ``(n,)``.

    Raises:
        DataError: anything else; the message names the file and the array.

    Example:
        >>> np.savez("data.npz", x_train=x, y_train=y, x_test=x, y_test=y)  # doctest: +SKIP
        >>> npz(Path("data.npz")).in_shape  # doctest: +SKIP
        (1, 28, 28)
    """
    return dataset_of_arrays(read_npz(path), name, path)


def read_npz(path: Path) -> Arrays:
    """The arrays of a ``.npz`` file.

    Raises:
        DataError: a missing or damaged file, and one of Python objects.
    """
    if not path.is_file():
        raise DataError(f"{path}: must be a .npz file, found none; check the path")
    try:
        with path.open("rb") as stream:
            content = np.load(stream, allow_pickle=False)
            if isinstance(content, np.ndarray):
                raise ValueError("a single array")
            return dict(content)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as fault:
        raise DataError(
            f"{path}: must be a .npz file of plain arrays, got: {fault}; write it with "
            "numpy.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)"
        ) from fault


def dataset_of_arrays(arrays: Arrays, name: str, path: Path) -> Dataset:
    """The data set of arrays laid out as in :func:`npz`; ``path`` is named in errors."""
    wanted = [f"{axis}_{split}" for split in SPLITS for axis in "xy"]
    if missing := [key for key in wanted if key not in arrays]:
        raise DataError(
            f"{path}: must hold x_train, y_train, x_test and y_test, got {sorted(arrays)}; "
            f"add {', '.join(missing)}"
        )
    try:
        train, test = (_samples(arrays, split) for split in SPLITS)
        n_classes = 1 + max(int(train.labels.max()), int(test.labels.max()))
        if "classes" not in arrays and n_classes > len(train) + len(test):
            raise ValueError(
                f"y_train and y_test must count classes from 0, got {n_classes - 1} among "
                f"{len(train) + len(test)} samples; count from 0, or name all in an array `classes`"
            )
        names = arrays["classes"].ravel() if "classes" in arrays else range(n_classes)
        return Dataset(name, train, test, tuple(map(str, names)))
    except ValueError as fault:
        raise DataError(f"{path}: {fault}") from fault


def write_arrays(file: Path, arrays: Arrays) -> None:
    """Write arrays to an uncompressed ``.npz`` file, which appears whole or not at all."""
    with write_aside(file) as aside:
        np.savez(aside, **cast(Any, arrays))


def _samples(arrays: Arrays, split: str) -> Samples:
    inputs, labels = _channels_first(arrays[f"x_{split}"]), arrays[f"y_{split}"]
    _require_layout(f"x_{split}", inputs.shape)
    is_bytes = inputs.dtype == np.uint8
    if not is_bytes and inputs.dtype.kind != "f":
        raise ValueError(
            f"x_{split} must be uint8 or floating, got {inputs.dtype}; "
            "store bytes as uint8 and scaled values as float32"
        )
    if labels.dtype.kind not in "iu":
        raise ValueError(
            f"y_{split} must be integers, got {labels.dtype}; store the number of each class"
        )
    dtype, scale = (np.uint8, BYTES) if is_bytes else (np.float32, 1.0)
    with np.errstate(over="ignore"):  # infinities are refused below
        stored = torch.from_numpy(np.ascontiguousarray(inputs, dtype))
    numbers = torch.from_numpy(np.ascontiguousarray(labels, np.int64))
    try:
        return Samples(stored, numbers, scale)
    except ValueError as fault:
        raise ValueError(f"{split} samples: {fault}") from fault


def _channels_first(inputs: NDArray[Any]) -> NDArray[Any]:
    """Bytes of images with their channels forward, where it is plain that they come last."""
    return inputs.transpose(0, 3, 1, 2) if channels_last(inputs.shape, inputs.dtype) else inputs


def channels_last(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether it is plain that the channels of images come last: bytes, and no other axis is as
    short.

    Example:
        >>> channels_last((60, 32, 32, 3), np.dtype(np.uint8))
        True
    """
    images = dtype == np.uint8 and len(shape) == 4 and shape[3] in LAST_CHANNELS
    return images and min(shape[1:3]) > max(LAST_CHANNELS)


def _require_layout(key: str, shape: tuple[int, ...]) -> None:
    rule = f"{key} must have shape (n, channels, height, width) or (n, features), got {shape}"
    if len(shape) == 4 and shape[3] in IMAGE_CHANNELS and shape[1] not in IMAGE_CHANNELS:
        raise ValueError(f"{rule}; move the channels forward with x.transpose(0, 3, 1, 2)")
    if len(shape) == 3:
        raise ValueError(f"{rule}; give grey images one channel with x[:, None]")
    if len(shape) not in (2, 4):
        raise ValueError(f"{rule}; reshape it")
