"""Tiny images, folders and archives."""

import io
import struct
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from PIL import Image


def png(value: int = 0, size: tuple[int, int] = (4, 4), mode: str = "RGB") -> bytes:
    stream = io.BytesIO()
    colour = value if mode in ("L", "P", "1", "I;16") else (value,) * len(mode)
    Image.new(mode, size, colour).save(stream, "PNG")
    return stream.getvalue()


def one_pixel_png(bits: int, colours: int) -> bytes:
    """A PNG file of one pixel at a depth that Pillow does not write."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content).to_bytes(4, "big")
        return len(content).to_bytes(4, "big") + kind + content + checksum

    row = bytes(1 + {0: 1, 2: 3, 4: 2, 6: 4}[colours] * bits // 8)
    header = struct.pack(">IIBBBBB", 1, 1, bits, colours, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(row)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


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
