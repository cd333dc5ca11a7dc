"""The header of an array in NumPy's format, read from a stream."""

from io import BufferedIOBase
from typing import Any

import numpy as np

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class ColumnsError(ValueError):
    """An array that lies column by column."""


def read_header(stream: BufferedIOBase, key: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an array whose rows follow in the stream.

    Raises:
        ColumnsError: an array that lies column by column.
        ValueError: another version.
    """
    version = np.lib.format.read_magic(stream)
    if version not in HEADERS:
        raise ValueError(f"{key} must be of version 1 or 2, got {version}; save plain numbers")
    shape, by_columns, dtype = HEADERS[version](stream)
    if by_columns:
        raise ColumnsError(
            f"{key} must lie row by row, got column by column; save numpy.ascontiguousarray({key})"
        )
    return shape, dtype
