"""The files of a tar archive, read as a stream: nothing is ever extracted."""

import bz2
import gzip
import lzma
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from io import BufferedIOBase, BufferedReader
from pathlib import Path

from unitmargin.data.files import (
    CHUNK,
    DataError,
    Member,
    explained,
    inner_name,
    left_out,
    progress_bar,
    refuse,
    require_size,
)

DECOMPRESSORS: dict[bytes, Callable[[BufferedReader], BufferedIOBase]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
"""First bytes of a compressed stream, and what reads it."""


def tar_members(path: Path, progress: str | None = None) -> Iterator[Member]:
    """The files and folders of a tar archive, in its own order; see :func:`members`.

    Raises:
        DataError: a damaged archive, a link that is not hard, a name outside of the archive, or a
            file of more than 256 MiB.
    """
    linked: dict[int, bytes] | None = None
    for number, (header, read) in enumerate(_entries(path, progress)):
        name = inner_name(path, header.name)
        if not name or left_out(name):
            continue
        if header.islnk():
            linked = _linked(path) if linked is None else linked
            read = partial(linked.__getitem__, number)
        elif not (header.isreg() or header.isdir()):
            refuse(path, name, "symbolic link" if header.issym() else "pipe or device")
        yield Member(name, header.isdir(), read)


def _linked(path: Path) -> dict[int, bytes]:
    """Contents of the hard links of an archive, by the number of their entry.

    They are read apart from the rest: a stream cannot go back to the file that a link names.
    """
    links = [header for header, _ in _entries(path) if header.islnk()]
    targets = {inner_name(path, header.linkname) for header in links}
    contents: dict[str, bytes] = {}
    linked = {}
    for number, (header, read) in enumerate(_entries(path)):
        name = inner_name(path, header.name)
        if header.islnk():
            target = inner_name(path, header.linkname)
            if target not in contents:
                raise DataError(
                    f"{path}: a hard link must name a file that comes before it in the archive, "
                    f"got {name}, which names {header.linkname}; pack the archive again"
                )
            linked[number] = contents[target]
        if name in targets and (header.islnk() or header.isreg()):
            contents[name] = linked[number] if header.islnk() else read()
    return linked


def _entries(
    path: Path, progress: str | None = None
) -> Iterator[tuple[tarfile.TarInfo, Callable[[], bytes]]]:
    """Whatever an archive holds, each with what reads its content before the next is asked for."""
    with (
        explained(path),
        path.open("rb") as raw,
        progress_bar(path.stat().st_size, progress, "B") as bar,
    ):
        stream = _decompressed(raw)
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=StrictHeader) as archive:
            for header in archive:
                yield header, partial(_read_entry, path, archive, header)
                bar.update(raw.tell() - bar.n)
        # The checksum of a compressed stream stands behind its data.
        while stream.read(CHUNK):
            pass
        bar.update(raw.tell() - bar.n)


def _decompressed(raw: BufferedReader) -> BufferedIOBase:
    start = raw.read(max(map(len, DECOMPRESSORS)))
    raw.seek(0)
    for magic, opened in DECOMPRESSORS.items():
        if start.startswith(magic):
            return opened(raw)
    return raw


def _read_entry(path: Path, archive: tarfile.TarFile, header: tarfile.TarInfo) -> bytes:
    require_size(path, header.name, header.size)
    with explained(path):
        content = archive.extractfile(header)
        return content.read() if content else b""


class StrictHeader(tarfile.TarInfo):
    """A tar header that must be whole; by default a damaged one ends the archive in silence."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "StrictHeader":
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as fault:
            if buf.count(0) == tarfile.BLOCKSIZE:
                raise
            raise tarfile.ReadError(f"{fault} in place of a file or the end mark") from fault
