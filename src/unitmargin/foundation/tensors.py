"""Tensors and text in one safetensors file."""

import errno
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import torch
from jaxtyping import Float32
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from unitmargin.foundation.files import nameless_file, write_aside

ALIGNMENT = 8
"""A header is padded to a multiple of so many bytes."""

SYSTEM_CODE = re.compile(r"(?:os error |code: )(\d+)")
"""Where the writer's message has the error number of the system."""


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> None:
    """Write tensors and a header of words; see :func:`write_aside`. The same content is the same
    file, byte by byte.

    Raises:
        OSError: a full disk, and whatever else the system refuses.
    """
    # Copies: tensors may share memory, which the format does not know.
    whole = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    with write_aside(path) as aside:
        try:
            save_file(whole, str(aside), metadata=dict(header) or None)
        except SafetensorError as error:
            raise _refusal(error, aside) from None
        _sort_header(aside)


class SpooledRows:
    """Rows of a float32 tensor that wait in a file until the last one is known; see
    :func:`spool_rows`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._shape: tuple[int, ...] = ()
        self._count = 0

    def add(self, rows: Float32[np.ndarray, "rows *shape"]) -> None:
        """Take in some rows, all of one shape."""
        self._file.write(np.ascontiguousarray(rows, "<f4").data)
        self._shape = rows.shape[1:]
        self._count += len(rows)

    def write(self, path: Path, name: str) -> None:
        """Write them as the one tensor of a file, byte by byte as :func:`write_tensors` does."""
        shape = [self._count, *self._shape]
        entry = {"data_offsets": [0, self._file.tell()], "dtype": "F32", "shape": shape}
        header = json.dumps({name: entry}, separators=(",", ":")).encode()
        length = -(-len(header) // ALIGNMENT) * ALIGNMENT
        self._file.seek(0)
        with write_aside(path) as aside, aside.open("wb") as file:
            file.write(length.to_bytes(8, "little") + header.ljust(length))
            shutil.copyfileobj(self._file, file)


@contextmanager
def spool_rows(place: Path) -> Iterator[SpooledRows]:
    """Rows of a tensor that are going to be written into a folder: they wait on its disk; see
    :func:`nameless_file`."""
    with nameless_file(place) as file:
        yield SpooledRows(file)


def _sort_header(path: Path) -> None:
    """Put the entries of a header into the order of their names; its writer has none."""
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        content = json.loads(file.read(length))
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        file.seek(8)
        file.write(text.encode().ljust(length))


def _refusal(error: SafetensorError, file: Path) -> OSError:
    """What the system refused, which the writer gives as text."""
    code = SYSTEM_CODE.search(str(error))
    if code is None:
        return OSError(errno.EIO, str(error), str(file))
    return OSError(int(code[1]), os.strerror(int(code[1])), str(file))


def _require_open(path: Path) -> None:
    """Raise what the system says of a file, which the reader does not tell from a damaged one."""
    with path.open("rb"):
        pass


def read_header(path: Path) -> dict[str, str]:
    """The header of a safetensors file, without its tensors.

    Raises:
        OSError: a file that cannot be opened.
        ValueError: a damaged file.
    """
    _require_open(path)
    try:
        with safe_open(str(path), framework="pt") as file:
            return dict(file.metadata() or {})
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged or truncated ({error})") from None


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and header of a safetensors file.

    Raises:
        OSError: a file that cannot be opened.
        ValueError: a damaged file.
    """
    _require_open(path)
    try:
        with safe_open(str(path), framework="pt") as file:
            # Copies: the reader maps the file, whose later changes would reach what was read.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            return tensors, dict(file.metadata() or {})
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged or truncated ({error})") from None


def makes_numbers() -> bool:
    """Whether a tensor that is made here holds numbers, and may be kept for later calls: those of a
    compiler, and of a mode that computes shapes alone, do not.

    Example:
        >>> makes_numbers()
        True
    """
    return not torch.compiler.is_compiling() and type(torch.empty(0, device="cpu")) is Tensor
