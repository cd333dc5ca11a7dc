"""Tiny images, folders and archives."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from PIL import Image


def png(value: int = 0, size: tuple[int, int] = (4, 4), mode: str = "RGB") -> bytes:
    stream = io.BytesIO()
    colour = value if mode in ("L", "P", "1", "I;16") else (value,) * len(mode)
    Image.new(mode, size, colour).save(stream, "PNG")
    return stream.getvalue()


def write_folder(root: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return root


def tar_bytes(
    files: Mapping[str, bytes],
    *,
    folders: tuple[str, ...] = (),
    links: Mapping[str, str] | None = None,
    kind: bytes = tarfile.LNKTYPE,
) -> bytes:
    """An archive of the folders, then the files, then the links: name to what it names."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in folders:
            header = tarfile.TarInfo(name)
            header.type = tarfile.DIRTYPE
            archive.addfile(header)
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
        for name, target in (links or {}).items():
            header = tarfile.TarInfo(name)
            header.type, header.linkname = kind, target
            archive.addfile(header)
    return stream.getvalue()
