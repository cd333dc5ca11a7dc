"""Tensors and text in one safetensors file."""

import errno
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from unitmargin.foundation.files import write_aside

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


def _sort_header(path: Path) -> None:
    """Put the entries of a header, which its writer leaves in any order, into that of their names."""
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


def read_header(path: Path) -> dict[str, str]:
    """The header of a safetensors file, without its tensors.

    Raises:
        ValueError: a damaged file.
    """
    try:
        with safe_open(str(path), framework="pt") as file:
            return dict(file.metadata() or {})
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged or truncated ({error})") from None


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and header of a safetensors file.

    Raises:
        ValueError: a damaged file.
    """
    try:
        with safe_open(str(path), framework="pt") as file:
            # Copies: the reader maps the file, whose later changes would reach what was read.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            return tensors, dict(file.metadata() or {})
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged or truncated ({error})") from None
