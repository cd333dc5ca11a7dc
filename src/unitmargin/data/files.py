"""The files of a folder or of a tar or zip archive, read as a stream: nothing is ever extracted."""

import hashlib
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Never

from tqdm.auto import tqdm

from unitmargin.foundation.failures import one_line
from unitmargin.foundation.files import file_sha256

FAULTS = (
    OSError, EOFError, lzma.LZMAError, zlib.error, tarfile.TarError, zipfile.BadZipFile,
    NotImplementedError, UnicodeError,
)  # fmt: skip
"""What reading a damaged file or archive may raise."""

MAX_DEPTH = 4
"""Top folder / split / class / file: nothing below is part of a known layout."""

CHUNK = 1 << 20
"""Bytes read at a time."""

MAX_FILE = 1 << 28
"""Bytes of one file that is read: the largest known one holds 150 MB of a data set."""

LITTER = {"thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "__macosx"}
"""What file managers leave in folders and archives, beside names that begin with a dot."""

ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
"""First bytes of a zip archive, and of an empty one."""


class DataError(ValueError):
    """A data file that cannot be used; the message names the file and the next step."""


def missing_test(fault: DataError) -> DataError:
    """The error for test data that are named beside the training data and are not there, perhaps
    because all of it has moved; made of the one that says so."""
    return DataError(
        f"{fault}, or state where both lie: unitmargin train RECIPE --data TRAIN "
        "--set data.test=TEST --out RUN"
    )


def unreadable(path: Path, fault: Exception, rule: str) -> DataError:
    """The error for a file: what is said of it in our own words, else the rule that it breaks."""
    said = one_line(str(fault))
    own = " must " in said
    return DataError(
        f"{path}: {said}" if own else f"{path}: must be {rule}, got: {said}; save it again"
    )


@dataclass(frozen=True)
class Member:
    """A file or folder inside a data folder or archive.

    Attributes:
        name: relative to the root, with ``/`` between the parts.
        read: gives the content of a file; to be called before the next member is asked for.
    """

    name: str
    is_folder: bool
    read: Callable[[], bytes]


def members(path: Path, progress: str | None = None) -> Iterator[Member]:
    """The files and folders under ``path``: a folder, or a tar or zip archive.

    A tar archive may be plain or compressed with gzip, bzip2 or xz; a hard link in it is a file
    with the content of the one that it names. Archives are read in their own order, a folder in the
    order of the names, to a depth of four. Left out is what has a part in its name that begins with
    a dot or is in ``LITTER``. With ``progress`` a bar of that name is shown.

    Raises:
        DataError: a missing path, a symbolic link, pipe or device, a file that is no archive, an
            archive that is encrypted, was cut short, ends without its end mark or names a file
            outside of it, or a file of more than 256 MiB.

    Example:
        >>> [member.name for member in members(Path("images"))]  # doctest: +SKIP
        ['train', 'train/cat', 'train/cat/1.png', 'test', 'test/cat', 'test/cat/2.png']
    """
    if path.is_dir():
        found = listing(path)
        with progress_bar(len(found), progress, "file") as bar:
            for name, file in found:
                yield Member(name, file.is_dir(), partial(_read_file, path, name, file))
                bar.update()
    elif is_zip(path):
        from unitmargin.data.zips import zip_members

        yield from zip_members(path, progress)
    elif path.is_file():
        from unitmargin.data.tars import tar_members

        yield from tar_members(path, progress)
    else:
        raise not_found(path, "a folder or a tar or zip archive")


def fingerprint(path: Path) -> str:
    """SHA-256 of the data under ``path``: another one if a byte or a name differs.

    Of an archive it digests the file, of a folder the name and content of everything in it, so a
    copy has the same one. Size and time of a file are not believed: they may outlive its content.
    :func:`remembered` says when it is not computed again.

    Raises:
        DataError: a missing path, and what :func:`members` refuses in a folder.
    """
    if not path.is_dir():
        with explained(path):
            return file_sha256(path)
    digest = hashlib.sha256()
    for name, file in listing(path):
        with explained(file):
            content = "folder" if file.is_dir() else file_sha256(file)
        digest.update(os.fsencode(name) + b"\0" + content.encode() + b"\0")
    return digest.hexdigest()


def listing(path: Path) -> list[tuple[str, Path]]:
    """The files and folders below a folder that :func:`members` gives, sorted by their names."""
    found = []
    for root, folders, files in os.walk(path, onerror=partial(_refuse_folder, path)):
        folders[:] = [name for name in folders if not left_out(name)]
        above = Path(root).relative_to(path).parts
        for name in folders + [name for name in files if not left_out(name)]:
            file, inner = Path(root, name), "/".join((*above, name))
            with explained(file):
                mode = file.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                refuse(path, inner, "symbolic link" if stat.S_ISLNK(mode) else "pipe or device")
            found.append((inner, file))
        if len(above) >= MAX_DEPTH - 1:
            folders.clear()
    return sorted(found)


def _refuse_folder(path: Path, fault: OSError) -> None:
    """By default a folder that cannot be opened is left out in silence."""
    with explained(path):
        raise fault


def is_zip(path: Path) -> bool:
    """Whether a file is a zip archive by its first bytes."""
    if not path.is_file():
        return False
    with explained(path), path.open("rb") as file:
        return file.read(len(ZIP_STARTS[0])) in ZIP_STARTS


def left_out(name: str) -> bool:
    """Whether a name is hidden, or of what file managers leave."""
    return any(part.startswith(".") or part.lower() in LITTER for part in name.split("/"))


def require_size(path: Path, name: str, size: int) -> None:
    """Raise unless a file is small enough to be read whole, before any of it is."""
    if size > MAX_FILE:
        raise DataError(
            f"{path}: a file must have {MAX_FILE} bytes at most, got {size} of {name}; remove it"
        )


def _read_file(path: Path, name: str, file: Path) -> bytes:
    with explained(file):
        require_size(path, name, file.stat().st_size)
        return file.read_bytes()


def refuse(path: Path, name: str, kind: str) -> Never:
    """Refuse what is neither file nor folder."""
    raise DataError(
        f"{path}: must hold files, folders and hard links alone, got the {kind} {name}; put what "
        "it stands for in its place (cp and tar do with --dereference) or remove it"
    )


def inner_name(path: Path, name: str) -> str:
    """The name without what changes nothing: ``./a//b/`` is ``a/b``."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise DataError(
            f"{path}: names must stay inside the archive, got {name}; pack it again from the "
            "folder that holds the files"
        )
    return "/".join(parts)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """What reading a damaged file raises, as one error that names it."""
    try:
        yield
    except FileNotFoundError:
        raise not_found(path, "a file or folder of data") from None
    except FAULTS as fault:
        raise DataError(
            f"{path}: must be readable, and an archive must be a whole tar file (plain, gzip, "
            f"bzip2 or xz) or zip file, got: {fault}; fetch or pack the file again"
        ) from fault


def not_found(path: Path, wanted: str) -> DataError:
    """The error of data that are not there; of a relative path it says where they were looked for.

    Example:
        >>> str(not_found(Path("/photos"), "a folder"))
        '/photos: must be a folder, found none; check the path'
    """
    place = "" if path.is_absolute() or path.exists() else f" in {Path.cwd()}"
    return DataError(f"{path}: must be {wanted}, found none{place}; check the path")


def progress_bar(total: int, progress: str | None, unit: str) -> "tqdm[Never]":
    """A bar on a terminal, none where it has no name."""
    # disable=None hides the bar where the output is no terminal.
    hidden = True if progress is None else None
    return tqdm(total=total, desc=progress, unit=unit, unit_scale=unit == "B", disable=hidden)
