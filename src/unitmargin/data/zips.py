"""The files of a zip archive, read one by one: nothing is ever extracted."""

import stat
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from unitmargin.data.files import (
    DataError,
    Member,
    explained,
    inner_name,
    left_out,
    progress_bar,
    refuse,
    require_size,
)

ENCRYPTED = 1
"""The flag of an entry whose content needs a password."""

UNIX_MODE = 16
"""Bits of an entry's attributes below its file type as Unix states it."""


def zip_members(path: Path, progress: str | None = None) -> Iterator[Member]:
    """The files and folders of a zip archive, in its own order; see :func:`members`.

    Raises:
        DataError: a damaged archive, an encrypted entry, a symbolic link, a name outside of the
            archive, or a file that claims more than 256 MiB.
    """
    with explained(path), zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        with progress_bar(len(entries), progress, "file") as bar:
            for entry in entries:
                name = inner_name(path, _slashes(entry))
                if name and not left_out(name):
                    _require_plain(path, name, entry)
                    yield Member(name, entry.is_dir(), partial(_read, path, archive, entry))
                bar.update()


def _slashes(entry: zipfile.ZipInfo) -> str:
    """The name with ``/`` between its parts: some programs on Windows write backslashes."""
    backslashes = "\\" in entry.filename and "/" not in entry.filename
    return entry.filename.replace("\\", "/") if backslashes else entry.filename


def _require_plain(path: Path, name: str, entry: zipfile.ZipInfo) -> None:
    kind = stat.S_IFMT(entry.external_attr >> UNIX_MODE)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        refuse(path, name, "symbolic link" if kind == stat.S_IFLNK else "pipe or device")
    if entry.flag_bits & ENCRYPTED:
        raise DataError(
            f"{path}: must need no password, got the encrypted file {name}; pack it again "
            "without encryption"
        )


def _read(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    require_size(path, entry.filename, entry.file_size)
    with explained(path):
        return archive.read(entry)
