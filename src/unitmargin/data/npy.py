"""Arrays in ``.npy`` files: mapped into memory, and written row by row."""

import math
import os
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

VERSION = (1, 0)
"""Of the format: the header of a later one is for names of columns, which these arrays lack."""


def map_array(file: Path) -> NDArray[Any]:
    """The array of a ``.npy`` file, mapped: pages are read when they are needed, and shared.

    Raises:
        OSError, ValueError: a file that is missing, damaged or shorter than it says.
    """
    array: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    return array


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
            raise OSError(fault.errno, fault.strerror, str(file)) from fault
