"""What a shard holds: images, each with its class beside it in a file of one name."""

import tarfile
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from unitmargin.data.files import ZIP_STARTS, DataError, explained, inner_name, left_out
from unitmargin.data.layout import IMAGE_SUFFIXES
from unitmargin.data.tars import DECOMPRESSORS, StrictHeader
from unitmargin.foundation.numbers import shown

LABEL = "cls"
"""The suffix of the file with the class of a sample."""

META = "__"
"""What begins and ends the names of files and folders that webdataset writes for itself."""

AGAIN = "pack the shard again"


def sample_part(file: Path, name: str) -> tuple[str, str] | tuple[None, None]:
    """The sample that a member of a shard is part of, and its suffix in small letters, which begins
    at the last dot; None for what is neither image nor class.

    Example:
        >>> sample_part(Path("a.tar"), "./cats/a0.v1.PNG"), sample_part(Path("a.tar"), "._a0.png")
        (('cats/a0.v1', 'png'), (None, None))
    """
    plain = inner_name(file, name)
    base, _, suffix = plain.rpartition(".")
    suffix = suffix.lower()
    top = plain.partition("/")[0]
    meta = len(top) > len(META) and top.startswith(META) and top.endswith(META)
    wanted = suffix == LABEL or f".{suffix}" in IMAGE_SUFFIXES
    return (base, suffix) if wanted and not meta and not left_out(plain) else (None, None)


def entries(file: Path) -> Iterator[tuple[str, Any, str]]:
    """The images of one shard in their order: name, what reads it, and the word for its class.

    A sample is what follows each other under one name, as it is streamed.

    Raises:
        DataError: a damaged or compressed file, an image without a class beside it, two images or
            classes in one sample, or a link in place of a file.
    """
    _require_plain(file)
    with explained(file), tarfile.open(file, "r:", tarinfo=StrictHeader) as archive:
        parts = [(*sample_part(file, member.name), member) for member in archive.getmembers()]
        files = [
            (base, suffix == LABEL, member)
            for base, suffix, member in parts
            if base is not None and _is_file(file, member)
        ]
        labelled = {base for base, is_label, _ in files if is_label}
        for base, run in groupby(files, key=lambda part: part[0]):
            image, label = _image_and_label(file, [part[1:] for part in run])
            if image is not None:
                name = f"{file}: {image.name}"
                if label is None and base in labelled:
                    raise DataError(
                        f"{name} must have its .{LABEL} file beside it, got other files between "
                        f"them; {AGAIN} with names sorted, as tar does by --sort=name"
                    )
                word = class_word(None if label is None else _content(archive, label), name)
                yield name, partial(_content, archive, image), word


def class_word(content: bytes | None, name: str) -> str:
    """The class in the file beside an image, None where there is no file.

    Raises:
        DataError: no file or no word.
    """
    word = "" if content is None else content.decode(errors="replace").strip()
    if not word:
        raise DataError(
            f"{name} must have a file of its name that ends in .{LABEL} with its class, got "
            f"{shown(content)}; {AGAIN}"
        )
    return word


def _require_plain(file: Path) -> None:
    with explained(file), file.open("rb") as stream:
        start = stream.read(max(map(len, DECOMPRESSORS)))
    if start.startswith((*DECOMPRESSORS, *ZIP_STARTS)):
        raise DataError(
            f"{file}: must be a plain tar file, whose images are read one by one, got a compressed "
            "one or a zip archive; unpack it"
        )


def _is_file(file: Path, member: tarfile.TarInfo) -> bool:
    """Whether it is a file; raises for what stands in place of one."""
    if member.isreg() or member.isdir():
        return member.isreg()
    kind = (
        "hard link" if member.islnk() else "symbolic link" if member.issym() else "pipe or device"
    )
    raise DataError(
        f"{file}: {member.name} must be a file, got a {kind}; {AGAIN}, by tar with --dereference "
        "and --hard-dereference"
    )


def _image_and_label(
    file: Path, run: list[tuple[bool, tarfile.TarInfo]]
) -> tuple[tarfile.TarInfo | None, tarfile.TarInfo | None]:
    """Of the files of one sample the image and the class; of either there is one or none."""
    found: dict[bool, tarfile.TarInfo] = {}
    for is_label, member in run:
        if is_label in found:
            kind = f".{LABEL} file" if is_label else "image"
            raise DataError(
                f"{file}: a sample must have one {kind}, got {found[is_label].name} and "
                f"{member.name}; remove or rename one"
            )
        found[is_label] = member
    return found.get(False), found.get(True)


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    return stream.read() if stream else b""
