"""Data sets in one NumPy ``.npz`` file."""

import math
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from io import BufferedIOBase
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from unitmargin.data.dataset import Dataset
from unitmargin.data.files import DataError, not_found
from unitmargin.data.headers import ColumnsError, read_header
from unitmargin.data.kept import Arrays, Kept, keep_arrays, save_array, unchanged
from unitmargin.data.npy import Pages, RowWriter, as_mapped, map_array
from unitmargin.data.origin import Origin
from unitmargin.data.remembered import remembered_fingerprint
from unitmargin.data.sample_rules import BLOCK
from unitmargin.data.samples import BYTES, Samples
from unitmargin.foundation.numbers import shown

SPLITS = ("train", "test")
CLASSES = "classes"
NAMES = "USiufb"
"""Kinds of types that class names may have: text, bytes, numbers, truth values."""

IMAGE_CHANNELS = (1, 3)

LAST_CHANNELS = (1, 3, 4)
"""Lengths of a last axis that are channels of bytes, where no other axis is as short."""

DAMAGE = (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error)
"""What reading a damaged file may raise."""

LARGE = 2**26
"""Bytes of inputs that are unpacked into the cache folder and mapped; fewer are read as they are,
which is faster than to hash them."""

CACHE_VERSION = 1
"""Part of the name of kept arrays: raise it when the same file gives other ones."""

WANTED = [f"{axis}_{split}" for split in SPLITS for axis in "xy"]


def npz(path: Path, name: str = "npz", cache: Path | None = None) -> Dataset:
    """The data set of a ``.npz`` file.

    Inputs of dtype uint8 get the scale 255, which puts them in [0, 1]; their channels may come last
    if only that axis has 1, 3 or 4 entries. Floating inputs are rounded to float32 and used as they
    are. An optional array ``classes`` names the classes (text, also as bytes in UTF-8, or numbers);
    by default they are called "0", "1", ... Of a large file the inputs are unpacked once into the
    cache folder and mapped from there; see :func:`keep_arrays`.

    Shapes: ``x_train`` and ``x_test`` are ``(n, channels, height, width)`` or ``(n, features)``,
    ``y_train`` and ``y_test`` integers ``(n,)``.

    Raises:
        DataError: anything else; the message names the file and the array.

    Example:
        >>> np.savez("data.npz", x_train=x, y_train=y, x_test=x, y_test=y)  # doctest: +SKIP
        >>> npz(Path("data.npz")).in_shape  # doctest: +SKIP
        (1, 28, 28)
    """
    if _length(path) < LARGE:
        return dataset_of_arrays(read_npz(path), name, path)
    return keep_dataset(path, name, cache, partial(_unpack, path, name))


def keep_dataset(
    path: Path, name: str, cache: Path | None, make: Callable[[Path], None]
) -> Dataset:
    """The data set of arrays that ``make`` writes into a folder, once for the content of a path and
    the name: a folder may hold several data sets."""
    content = remembered_fingerprint(path, cache)
    checked = unchanged(path, content, partial(remembered_fingerprint, path, cache), make)
    kept = keep_arrays(cache, f"arrays-{CACHE_VERSION}-{name}-{content}", checked)
    return dataset_of_arrays(kept.arrays, name, path, kept)


def _length(path: Path) -> int:
    """Bytes of the arrays of a file; 0 of what is no such file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return sum(entry.file_size for entry in archive.infolist())
    except (OSError, zipfile.BadZipFile):
        return 0


def _unpack(path: Path, name: str, folder: Path) -> None:
    """Write the arrays of a file into a folder, the inputs as samples have them, block by block."""
    try:
        with zipfile.ZipFile(path) as archive, np.load(path, allow_pickle=False) as content:
            for key in content.files:
                if key in WANTED[::2]:
                    try:
                        with archive.open(f"{key}.npy") as stream:
                            _write_inputs(folder, key, cast(BufferedIOBase, stream))
                    except ColumnsError:
                        _save_inputs(folder, key, content[key])
                elif key in (*WANTED, CLASSES):
                    save_array(folder, key, content[key])
    except DAMAGE as fault:
        raise _unread(path, fault) from fault
    arrays = {file.stem: map_array(file) for file in folder.glob("*.npy")}
    dataset_of_arrays(arrays, name, path)


def _write_inputs(folder: Path, key: str, stream: BufferedIOBase) -> None:
    shape, dtype = read_header(stream, key)
    last = channels_last(shape, dtype)
    moved = (shape[0], shape[3], *shape[1:3]) if last else shape
    require_layout(key, moved, dtype)
    kind = _stored_type(dtype)
    width = dtype.itemsize * math.prod(shape[1:])
    size = max(1, BLOCK // width)
    with RowWriter(folder / f"{key}.npy", moved, kind) as writer:
        for start in range(0, shape[0], size):
            count = min(size, shape[0] - start)
            rows = np.frombuffer(stream.read(count * width), dtype).reshape(count, *shape[1:])
            writer.write(start, _stored(rows))
    if stream.read(1):
        raise ValueError(f"{key} must end with its last input, got more")


def _save_inputs(folder: Path, key: str, inputs: NDArray[Any]) -> None:
    """Write inputs that cannot be read block by block."""
    require_layout(key, _channels_first(inputs).shape, inputs.dtype)
    save_array(folder, key, _stored(inputs))


def _stored_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.uint8 if dtype == np.uint8 else np.float32)


def _stored(inputs: NDArray[Any]) -> NDArray[Any]:
    """Inputs as samples have them."""
    with np.errstate(over="ignore"):  # infinities are refused where all is read
        return np.ascontiguousarray(_channels_first(inputs), _stored_type(inputs.dtype))


def read_npz(path: Path) -> Arrays:
    """The arrays of a ``.npz`` file.

    Raises:
        DataError: a missing or damaged file, and one of Python objects.
    """
    if not path.is_file():
        raise not_found(path, "a .npz file")
    try:
        with path.open("rb") as stream:
            content = np.load(stream, allow_pickle=False)
            if isinstance(content, np.ndarray):
                raise ValueError("a single array")
            return dict(content)
    except DAMAGE as fault:
        raise _unread(path, fault) from fault


def _unread(path: Path, fault: Exception) -> DataError:
    return DataError(
        f"{path}: must be a .npz file of plain arrays, got: {fault}; write it with "
        "numpy.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)"
    )


def dataset_of_arrays(arrays: Arrays, name: str, path: Path, kept: Kept | None = None) -> Dataset:
    """The data set of arrays laid out as in :func:`npz`; ``path`` is named in errors. With ``kept``
    the inputs are its, which were judged when they were written."""
    if missing := [key for key in WANTED if key not in arrays]:
        raise DataError(
            f"{path}: must hold x_train, y_train, x_test and y_test, got {sorted(arrays)}; "
            f"add {', '.join(missing)}"
        )
    try:
        train, test = (_samples(arrays, split, kept) for split in SPLITS)
        n_classes = 1 + max(int(train.labels.max()), int(test.labels.max()))
        least = min(int(train.labels.min()), int(test.labels.min()))
        if CLASSES not in arrays and least > 0:
            raise ValueError(
                f"y_train and y_test must count classes from 0, got {least} as the least; subtract "
                "it, or name all classes in an array `classes`"
            )
        if CLASSES not in arrays and n_classes > len(train) + len(test):
            raise ValueError(
                f"y_train and y_test must count classes from 0, got {n_classes - 1} among "
                f"{len(train) + len(test)} samples; count from 0, or name all in an array `classes`"
            )
        unseen = {*range(n_classes)} - {*train.labels.unique().tolist()}
        if CLASSES not in arrays and unseen:
            raise ValueError(
                f"y_train must hold every class, got none of {min(unseen)} below {n_classes}; "
                "count classes from 0 without a gap, or name all in an array `classes`"
            )
        names = _class_names(arrays[CLASSES] if CLASSES in arrays else np.arange(n_classes))
        return Dataset(name, train, test, names)
    except ValueError as fault:
        raise DataError(f"{path}: {fault}") from fault


def _samples(arrays: Arrays, split: str, kept: Kept | None) -> Samples:
    key = f"x_{split}"
    inputs, labels = arrays[key], arrays[f"y_{split}"]
    require_layout(key, _channels_first(inputs).shape, inputs.dtype)
    if labels.dtype.kind not in "iu":
        raise ValueError(
            f"y_{split} must be integers, got {labels.dtype}; store the number of each class"
        )
    stored, scale = as_mapped(_stored(inputs)), BYTES if inputs.dtype == np.uint8 else 1.0
    origin = None if kept is None else Origin(stored, kept.sha256[key], kept.folder, Pages(inputs))
    try:
        return Samples(stored, torch.from_numpy(labels.astype(np.int64)), scale, origin=origin)
    except ValueError as fault:
        raise ValueError(f"{split} samples: {fault}") from fault


def _class_names(given: NDArray[Any]) -> tuple[str, ...]:
    rule, step = "must be text in UTF-8 or numbers", "write the names as an array of str"
    if given.dtype.kind not in NAMES:
        raise ValueError(f"{CLASSES} {rule}, got {given.dtype}; {step}")
    try:
        return tuple(
            name.decode() if isinstance(name, bytes) else str(name) for name in given.ravel()
        )
    except UnicodeDecodeError as fault:
        raise ValueError(f"{CLASSES} {rule}, got {shown(fault.object)}; {step}") from None


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


def require_layout(key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise a ValueError unless inputs have a shape and a type that a data set can have."""
    rule = f"{key} must have shape (n, channels, height, width) or (n, features), got {shape}"
    behind = len(shape) == 4 and shape[3] in LAST_CHANNELS and shape[1] not in IMAGE_CHANNELS
    # Maps of four columns exist, so four channels behind are told by squares in front of them.
    if behind and (shape[3] in IMAGE_CHANNELS or shape[1] == shape[2] > max(LAST_CHANNELS)):
        raise ValueError(f"{rule}; move the channels forward with x.transpose(0, 3, 1, 2)")
    if len(shape) == 3:
        raise ValueError(f"{rule}; give grey images one channel with x[:, None]")
    if len(shape) not in (2, 4):
        raise ValueError(f"{rule}; reshape it")
    if dtype != np.uint8 and dtype.kind != "f":
        raise ValueError(
            f"{key} must be uint8 or floating, got {dtype}; "
            "store bytes as uint8 and scaled values as float32"
        )
