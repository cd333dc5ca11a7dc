"""Model files with a changed content."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from unitmargin.frozen.files import fingerprint


def header(path: Path) -> dict[str, str]:
    size = int.from_bytes(path.read_bytes()[:8], "little")
    metadata: dict[str, str] = json.loads(path.read_bytes()[8 : 8 + size])["__metadata__"]
    return metadata


def rewrite(
    path: Path,
    changes: dict[str, str] | None = None,
    tensors: dict[str, torch.Tensor] | None = None,
    drop: str = "",
    rehash: bool = True,
) -> None:
    """The same file with changed header entries and tensors, without the entry ``drop``."""
    metadata = {key: text for key, text in (header(path) | (changes or {})).items() if key != drop}
    content = {key: value for key, value in load_file(path).items() if key != drop}
    content |= tensors or {}
    if rehash:
        metadata["sha256"] = fingerprint(metadata, content)
    save_file(content, path, metadata=metadata)
