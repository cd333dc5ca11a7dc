"""Where mapped inputs come from, and the hashes of samples of them that are remembered there."""

import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from torch import Tensor

from unitmargin.data.npy import Pages
from unitmargin.foundation.files import write_text

SHA256 = re.compile("[0-9a-f]{64}")

HASH = "samples"
"""Ends the name of a file that holds the hash of samples; its name is that of what they are."""


class Origin(NamedTuple):
    """Of mapped inputs: what they are part of, and what remembers hashes of samples of them.

    Attributes:
        inputs: the tensor itself, which keeps its memory from being used for another one.
        sha256: of the whole that the inputs are part of, and which part they are.
        folder: where hashes are remembered.
        pages: of the map.
    """

    inputs: Tensor
    sha256: str
    folder: Path
    pages: Pages

    def is_of(self, inputs: Tensor) -> bool:
        """Whether a tensor is the one on the mapped memory."""
        mine, other = self.inputs, inputs
        same = mine.shape == other.shape and mine.stride() == other.stride()
        return same and mine.device == other.device and mine.data_ptr() == other.data_ptr()

    def remembered_sha256(
        self, facts: str, parts: Sequence[Tensor], compute: Callable[[], str]
    ) -> str:
        """The hash of samples of these inputs; ``facts`` and ``parts`` are all else that it is of.

        What was remembered is of the same content, since its name is a hash of that.
        """
        key = hashlib.sha256(f"{facts}\0{self.sha256}\0".encode())
        for part in parts:
            key.update(np.ascontiguousarray(part.numpy()).data)
        memory = self.folder / f"{key.hexdigest()}.{HASH}"
        with suppress(OSError, UnicodeError):
            known = memory.read_text(encoding="utf-8")
            if SHA256.fullmatch(known):
                return known
        found = compute()
        with suppress(OSError):  # a cache that can only be read
            write_text(memory, found)
        return found
