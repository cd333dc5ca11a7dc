"""Tiny images, folders and archives, and what is kept of them."""

import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, ImageDraw


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


def zip_bytes(
    files: Mapping[str | zipfile.ZipInfo, bytes] | Mapping[str, bytes],
    method: int = zipfile.ZIP_DEFLATED,
) -> bytes:
    """A zip archive; a name that ends in a slash is a folder."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def photo(number: int, size: tuple[int, int], kind: str = "PNG", orientation: int = 1) -> bytes:
    """A made-up photo: a gradient with a disc in it, each number another one."""
    width, height = size
    across, down = np.linspace(0, 200, width), np.linspace(0, 55, height)
    pixels = np.add.outer(down, across)[:, :, None] * np.array([1.0, 0.7, 0.4]) * (1 - number / 99)
    image = Image.fromarray(pixels.astype(np.uint8))
    ImageDraw.Draw(image).ellipse((number, number, number + 9, number + 9), fill=(250, number, 90))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    stream = io.BytesIO()
    turned = {"exif": exif} if kind in ("JPEG", "PNG", "WEBP") else {}
    image.save(stream, kind, **turned)
    return stream.getvalue()


def kept(cache: Path) -> list[Path]:
    """What a cache folder keeps, beside locks and what it remembers of files."""
    return sorted(file for file in cache.iterdir() if not file.name.startswith("."))
