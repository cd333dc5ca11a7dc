"""The files of a zip archive, read one by one: nothing is ever extracted."""

import stat
import zipfile
from collections.abc import Iterator
from contextlib import suppress
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

UTF8 = 0x800
"""The flag of an entry whose name is UTF-8."""

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
                name = inner_name(path, _name(entry))
                if name and not left_out(name):
                    _require_plain(path, name, entry)
                    yield Member(name, entry.is_dir(), partial(_read, path, archive, entry, name))
                bar.update()


def _name(entry: zipfile.ZipInfo) -> str:
    """The name in UTF-8, as programs on Unix write it without a flag that says so, and with ``/``
    between its parts, where some programs on Windows write backslashes."""
    name = entry.filename
    if not entry.flag_bits & UTF8:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name.replace("\\", "/") if "\\" in name and "/" not in name else name


def _require_plain(path: Path, name: str, entry: zipfile.ZipInfo) -> None:
    kind = stat.S_IFMT(entry.external_attr >> UNIX_MODE)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        refuse(path, name, "symbolic link" if kind == stat.S_IFLNK else "pipe or device")
    if entry.flag_bits & ENCRYPTED:
        raise DataError(
            f"{path}: must need no password, got the encrypted file {name}; pack it again "
            "without encryption"
        )


def _read(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> bytes:
    require_size(path, name, entry.file_size)
    with explained(path):
        return archive.read(entry)
