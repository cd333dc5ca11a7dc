"""Arrays in ``.npy`` files: mapped into memory, and written row by row."""

import math
import mmap
import os
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

IN_USE = 2**28
"""Bytes that a process has mapped at most, about, before it lets them go."""

AROUND = 2**20
"""Bytes that the system maps around one that is read, at most, about."""

LET_GO: int | None = getattr(mmap, "MADV_DONTNEED", None)
"""The system's word for it, where it has one; of a file that is only read nothing is lost."""


def map_array(file: Path) -> NDArray[Any]:
    """The array of a ``.npy`` file, mapped: pages are read when they are needed, and shared.

    Raises:
        OSError, ValueError: a file that is missing, damaged or shorter than it says.
    """
    array: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    return array


class Pages:
    """The pages of a mapped array that a process has in use: let go after so many bytes.

    They stay in the memory of the system, which takes them where it needs room, and are found there
    again in microseconds; but what a process holds does not grow with what it has read.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.map: mmap.mmap | None = getattr(array, "_mmap", None)
        self.touched = 0

    def touch(self, length: int, rows: int = 1) -> None:
        """Count bytes that were read in so many rows apart, and let all pages go where they are
        many."""
        self.touched += max(length, rows * AROUND)
        if self.touched >= IN_USE and self.map is not None and LET_GO is not None:
            self.touched = 0
            self.map.madvise(LET_GO)


def can_take_rows(inputs: Tensor) -> bool:
    """Whether :func:`take_rows` takes it."""
    return inputs.device.type == "cpu" and inputs.is_contiguous()


def take_rows(inputs: Tensor, index: Tensor) -> Tensor:
    """Rows of a contiguous tensor on the CPU, as ``inputs[index]``, which copies entry by entry and
    takes up to thirty times as long for bytes."""
    flat = inputs.numpy().reshape(len(inputs), -1)
    return torch.from_numpy(flat.take(index.numpy(), axis=0)).view(len(index), *inputs.shape[1:])


def as_mapped(array: NDArray[Any]) -> Tensor:
    """A tensor on the memory of an array, also of one that can only be read.

    Such a tensor must not be written to: the system would end the process.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)


class RowWriter:
    """A ``.npy`` file of a known shape whose rows are written in any order.

    A file that is there with this shape and type is written further. The whole length is taken from
    the disk at the beginning, so that it cannot run out in the middle where the system can promise
    that. Rows that were not written are zero.

    Raises:
        OSError: what the system refuses, such as a full disk.
    """

    def __init__(self, file: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.file, self.shape, self.dtype = file, shape, dtype
        self.width = dtype.itemsize * math.prod(shape[1:])
        if not _holds(file, shape, dtype):
            _allocate(file, shape, dtype)
        self.stream = file.open("r+b", buffering=0)
        np.lib.format.read_magic(self.stream)
        np.lib.format.read_array_header_1_0(self.stream)
        self.start = self.stream.tell()

    def write(self, row: int, rows: NDArray[Any]) -> None:
        """Put rows at a place and behind it."""
        self.stream.seek(self.start + row * self.width)
        content = np.ascontiguousarray(rows, self.dtype).data.cast("B")
        while content:
            content = content[self.stream.write(content) :]

    def sync(self) -> None:
        """Return when all that was written is on the disk."""
        os.fsync(self.stream.fileno())

    def __enter__(self) -> "RowWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stream.close()


def _holds(file: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    try:
        found = map_array(file)
    except (OSError, ValueError):
        return False
    return found.shape == shape and found.dtype == dtype and found.flags.c_contiguous


def _allocate(file: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    with file.open("wb") as stream:
        facts = {
            "shape": shape,
            "fortran_order": False,
            "descr": np.lib.format.dtype_to_descr(dtype),
        }
        np.lib.format.write_array_header_1_0(stream, facts)
        stream.flush()
        start, length = stream.tell(), dtype.itemsize * math.prod(shape)
        reserve = getattr(os, "posix_fallocate", None)
        try:
            if reserve is not None:
                reserve(stream.fileno(), start, length)
            stream.truncate(start + length)
        except OSError as fault:
            file.unlink()
            raise OSError(fault.errno, fault.strerror, str(file)) from fault
