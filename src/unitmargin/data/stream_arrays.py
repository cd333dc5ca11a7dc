"""New inputs from a ``.npy`` or ``.npz`` file, read block by block."""

import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from unitmargin.data.arrays import channels_last
from unitmargin.data.files import CHUNK, DataError, unreadable
from unitmargin.data.headers import read_header
from unitmargin.data.stream_items import UNKNOWN, Item, Wanted, scaled

ZIP, NPY = b"PK\x03\x04", b"\x93NUMPY"
"""First bytes of either kind of file."""

INPUTS, LABELS = ("x", "inputs"), ("y", "labels")
"""What the arrays of a ``.npz`` file may be called."""

FAULTS = (
    OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What reading a damaged file may raise."""


def is_arrays(path: Path) -> bool:
    """Whether a file is meant to hold arrays, by its first bytes or its name."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(len(NPY))
    suffix = path.suffix.lower()
    if not start.startswith(ZIP) or suffix in (".npz", ".npy"):
        return start == NPY or suffix in (".npz", ".npy")
    try:
        with zipfile.ZipFile(path) as archive:
            return all(name.endswith(".npy") for name in archive.namelist())
    except FAULTS:
        return suffix != ".zip"


def array_names(path: Path) -> list[str]:
    """The names of the arrays of a ``.npz`` file; none of a ``.npy`` file."""
    with _explained(path):
        if path.suffix.lower() == ".npy" or not zipfile.is_zipfile(path):
            return []
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]


def read_arrays(path: Path, wanted: Wanted) -> Iterator[Item]:
    """Every row of the array of inputs.

    Raises:
        DataError: a damaged file, arrays of other names, shapes or types, labels that are no
            classes of the network.
    """
    with path.open("rb") as file:
        start = file.read(len(ZIP))
    with _explained(path):
        if start != ZIP and path.suffix.lower() != ".npz":
            with path.open("rb") as stream:
                yield from _rows(stream, "x", wanted, None)
            return
        with zipfile.ZipFile(path) as archive:
            names = {name.removesuffix(".npy"): name for name in archive.namelist()}
            key, labels = _one_of(INPUTS, names), _labels(archive, names, len(wanted.classes))
            if key is None:
                raise DataError(
                    f"{path}: must hold an array `x` or `inputs`, got {sorted(names)}; write it "
                    "with numpy.savez(path, x=...)"
                )
            with archive.open(names[key]) as stream:
                yield from _rows(cast(BufferedIOBase, stream), key, wanted, labels)


def _rows(
    stream: BufferedIOBase, key: str, wanted: Wanted, labels: NDArray[np.int64] | None
) -> Iterator[Item]:
    shape, dtype = read_header(stream, key)
    last = channels_last(shape, dtype) and shape[1:] != wanted.in_shape
    moved = (shape[0], shape[3], *shape[1:3]) if last else shape
    _require_inputs(key, moved, dtype, wanted.in_shape)
    if labels is not None and len(labels) != shape[0]:
        raise ValueError(
            f"labels must be one for each of the {shape[0]} inputs, got {len(labels)}; add or "
            "leave out the others"
        )
    width = dtype.itemsize * math.prod(wanted.in_shape)
    size = max(1, CHUNK // width)
    for start in range(0, shape[0], size):
        count = min(size, shape[0] - start)
        block = stream.read(count * width)
        if len(block) != count * width:
            raise EOFError("it ends before its last input")
        rows = np.frombuffer(block, dtype).reshape(count, *shape[1:])
        for place, row in enumerate(rows.transpose(0, 3, 1, 2) if last else rows):
            number = start + place
            label = UNKNOWN if labels is None else int(labels[number])
            yield Item(scaled(row), label, f"{key}[{number}]")
    if stream.read(1):  # also where the checksum of a zip file is compared
        raise ValueError("it goes on behind its last input")


def _require_inputs(
    key: str, shape: tuple[int, ...], dtype: np.dtype[Any], in_shape: tuple[int, ...]
) -> None:
    if dtype != np.uint8 and dtype.kind != "f":
        raise ValueError(
            f"{key} must be uint8 or floating, got {dtype}; store bytes as uint8 and scaled values "
            "as float32"
        )
    if shape[1:] == in_shape:
        return
    step = "reshape it, or pass inputs of this network"
    if shape == in_shape:
        step = f"add the batch axis: {key}[None]"
    elif len(in_shape) == 3 and shape[1:] == in_shape[1:] and in_shape[0] == 1:
        step = f"give grey images one channel with {key}[:, None]"
    elif len(in_shape) == 3 and shape[1:] == (*in_shape[1:], in_shape[0]):
        step = f"move the channels forward with {key}.transpose(0, 3, 1, 2)"
    raise ValueError(
        f"{key} must have shape (n, {', '.join(map(str, in_shape))}), that of the network's "
        f"inputs, got {shape}; {step}"
    )


def _labels(
    archive: zipfile.ZipFile, names: dict[str, str], n_classes: int
) -> NDArray[np.int64] | None:
    key = _one_of(LABELS, names)
    if key is None:
        return None
    with archive.open(names[key]) as stream:
        labels = np.lib.format.read_array(stream, allow_pickle=False)
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise ValueError(
            f"{key} must be integers of shape (n,), got {labels.dtype} of shape {labels.shape}; "
            "store the number of each class"
        )
    low, high = (int(end) for end in (labels.min(initial=0), labels.max(initial=0)))
    if low < 0 or high >= n_classes:
        raise ValueError(
            f"{key} must be from 0 to {n_classes - 1}, the classes of the model, got "
            f"{low if low < 0 else high}; correct it, or leave {key} out"
        )
    return np.asarray(labels, np.int64)


def _one_of(keys: tuple[str, ...], names: dict[str, str]) -> str | None:
    found = [key for key in keys if key in names]
    if len(found) > 1:
        raise ValueError(f"it must hold one of {' and '.join(keys)}, got both; leave one out")
    return found[0] if found else None


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except FAULTS as fault:
        raise unreadable(path, fault, "a whole .npz or .npy file of plain arrays") from fault
