"""Folders and archives: read alike, damaged ones refused, and a fingerprint of the content."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from data.tiny import tar_bytes, write_folder

from unitmargin.data.files import DataError, fingerprint, members

FILES = {"top/a.txt": b"first" * 300, "top/deep/b.txt": bytes(range(256)) * 8}
PACKERS = [bytes, gzip.compress, bz2.compress, lzma.compress]


def contents(path: Path) -> dict[str, bytes]:
    return {member.name: member.read() for member in members(path) if not member.is_folder}


@pytest.mark.parametrize("pack", PACKERS)
def test_archives_are_read_whatever_packs_them(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "data.any"
    path.write_bytes(pack(tar_bytes(FILES)))
    assert contents(path) == FILES


def test_folders_are_read_like_archives(tmp_path: Path) -> None:
    assert contents(write_folder(tmp_path / "data", FILES)) == FILES
    names = [(member.name, member.is_folder) for member in members(tmp_path / "data")]
    assert names == [
        ("top", True),
        ("top/a.txt", False),
        ("top/deep", True),
        ("top/deep/b.txt", False),
    ]


def test_folders_are_read_to_depth_four(tmp_path: Path) -> None:
    write_folder(tmp_path, {"1/2/3/4": b"", "1/2/3/deep/5": b""})
    assert [member.name for member in members(tmp_path)][-2:] == ["1/2/3/4", "1/2/3/deep"]


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("kept", [0.05, 0.3, 0.6, 0.9, 0.97])
def test_an_archive_cut_anywhere_is_refused(
    tmp_path: Path, pack: Callable[[bytes], bytes], kept: float
) -> None:
    # Cut a plain archive among its files: what follows the end mark is padding.
    end = len(FILES) * 512 + 512 * 3 + 512 * 4
    whole = tar_bytes(FILES)[:end] if pack is bytes else pack(tar_bytes(FILES))
    path = tmp_path / "data.tar"
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(DataError, match=rf"^{path}: must be readable.*again$"):
        contents(path)


def test_a_damaged_header_does_not_end_the_archive_in_silence(tmp_path: Path) -> None:
    whole = bytearray(tar_bytes(FILES))
    second = 512 + 512 * 3
    whole[second : second + 10] = b"0123456789"
    path = tmp_path / "data.tar"
    path.write_bytes(whole)
    with pytest.raises(DataError, match="in place of a file or the end mark"):
        contents(path)


def test_a_damaged_checksum_is_noticed(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(tar_bytes(FILES)))
    packed[-8] ^= 1
    path = tmp_path / "data.tar.gz"
    path.write_bytes(packed)
    with pytest.raises(DataError, match="CRC"):
        contents(path)


def test_links_and_devices_in_archives_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "data.tar"
    with tarfile.open(path, "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            header = tarfile.TarInfo(f"odd{kind!r}")
            header.type, header.linkname = kind, "/etc/hostname"
            archive.addfile(header)
        header = tarfile.TarInfo("./file")
        header.size = 2
        archive.addfile(header, io.BytesIO(b"ok"))
    assert contents(path) == {"file": b"ok"}


def test_pipes_in_folders_are_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert list(members(tmp_path)) == []


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 5000, b"PK\x03\x04" + bytes(3000)])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.tar"
    path.write_bytes(content)
    with pytest.raises(DataError, match="whole tar file"):
        contents(path)


def test_a_missing_path_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "absent"
    with pytest.raises(DataError, match=f"{path}: must be a folder or a tar archive"):
        contents(path)
    with pytest.raises(DataError, match=f"{path}"):
        fingerprint(path)


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path, {"a": b"1"})
    listed = list(members(tmp_path))
    (tmp_path / "a").unlink()
    with pytest.raises(DataError, match=f"{tmp_path / 'a'}"):
        listed[0].read()


def test_the_fingerprint_of_an_archive_is_that_of_its_content(tmp_path: Path) -> None:
    first, copy, other = (tmp_path / name for name in "abc")
    first.write_bytes(b"one")
    copy.write_bytes(b"one")
    other.write_bytes(b"two")
    assert fingerprint(first) == fingerprint(copy) != fingerprint(other)


def test_the_fingerprint_of_a_folder_follows_its_files(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data", FILES)
    first = fingerprint(folder)
    assert fingerprint(folder) == first
    os.utime(folder / "top/a.txt", ns=(1, 1))
    second = fingerprint(folder)
    write_folder(folder, {"top/c.txt": b""})
    assert len({first, second, fingerprint(folder)}) == 3
