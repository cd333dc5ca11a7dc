"""Zip archives are read like others; what is damaged, hidden behind a password or huge is not."""

import io
import stat
import zipfile
from pathlib import Path

import pytest
from data.tiny import zip_bytes

from unitmargin.data.files import DataError, fingerprint, is_zip, members

FILES = {"top/a.txt": b"first" * 300, "top/deep/b.txt": bytes(range(256)) * 8}


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def contents(path: Path) -> dict[str, bytes]:
    return {member.name: member.read() for member in members(path) if not member.is_folder}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_zip_archives_are_read_whatever_packs_them(tmp_path: Path, method: int) -> None:
    path = written(tmp_path / "any.name", zip_bytes(FILES, method=method))
    assert is_zip(path)
    assert contents(path) == FILES
    assert fingerprint(path) == fingerprint(written(tmp_path / "copy", path.read_bytes()))


def test_folders_and_litter_are_told_from_files(tmp_path: Path) -> None:
    litter = {"__MACOSX/top/._a.txt": b"", "top/Thumbs.db": b"", "top/.DS_Store": b"", "top/": b""}
    path = written(tmp_path / "a.zip", zip_bytes(FILES | litter))
    assert contents(path) == FILES
    assert [member.name for member in members(path) if member.is_folder] == ["top"]


def test_names_with_backslashes_are_folders(tmp_path: Path) -> None:
    path = written(tmp_path / "a.zip", zip_bytes({"top\\a.txt": b"x"}))
    assert contents(path) == {"top/a.txt": b"x"}


@pytest.mark.parametrize("name", ["../a.txt", "top/../../a.txt"])
def test_names_outside_of_the_archive_are_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "a.zip", zip_bytes({name: b""}))
    with pytest.raises(DataError, match="names must stay inside the archive, got "):
        contents(path)


def test_symbolic_links_are_refused(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = written(tmp_path / "a.zip", zip_bytes({entry: b"/etc/hostname"}))
    with pytest.raises(DataError, match=r"got the symbolic link link;"):
        contents(path)


def test_encrypted_files_are_named(tmp_path: Path) -> None:
    whole = bytearray(zip_bytes({"a.txt": b"x"}))
    for magic, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        whole[whole.index(magic) + place] |= 1
    path = written(tmp_path / "a.zip", bytes(whole))
    with pytest.raises(DataError, match=r"must need no password, got the encrypted file a.txt;"):
        contents(path)


def test_a_file_that_claims_too_much_is_not_read(tmp_path: Path) -> None:
    whole = bytearray(zip_bytes({"a.txt": b"x"}))
    size = whole.index(b"PK\x01\x02") + 24
    whole[size : size + 4] = (0xFFFFFFF0).to_bytes(4, "little")
    path = written(tmp_path / "a.zip", bytes(whole))
    with pytest.raises(DataError, match=r"268435456 bytes at most, got 4294967280 of a.txt;"):
        contents(path)


@pytest.mark.parametrize("kept", [0.05, 0.5, 0.9, 0.99])
def test_an_archive_cut_anywhere_is_refused(tmp_path: Path, kept: float) -> None:
    whole = zip_bytes(FILES)
    path = written(tmp_path / "a.zip", whole[: int(kept * len(whole))])
    with pytest.raises(DataError, match=rf"^{path}: must be readable.*again$"):
        contents(path)


def test_a_damaged_content_is_noticed(tmp_path: Path) -> None:
    whole = bytearray(zip_bytes(FILES, method=zipfile.ZIP_STORED))
    whole[whole.index(b"first")] ^= 1
    path = written(tmp_path / "a.zip", bytes(whole))
    with pytest.raises(DataError, match="CRC"):
        contents(path)


def test_an_archive_behind_other_bytes_is_none(tmp_path: Path) -> None:
    stream = io.BytesIO(b"#!/bin/sh\n" + zip_bytes(FILES))
    assert not is_zip(written(tmp_path / "a.zip", stream.getvalue()))


def without_flag(whole: bytes) -> bytes:
    """An archive as the `zip` of Linux writes it: names in UTF-8, and no flag that says so."""
    bare = bytearray(whole)
    for magic, place in ((b"PK\x03\x04", 7), (b"PK\x01\x02", 9)):
        at = bare.find(magic)
        while at >= 0:
            bare[at + place] &= ~8
            at = bare.find(magic, at + 1)
    return bytes(bare)


def test_names_in_utf_8_need_no_flag(tmp_path: Path) -> None:
    files = {"café/über.txt": b"x", "日本/a.txt": b"y", "plain/b.txt": b"z"}
    flagged = zip_bytes(files)
    assert without_flag(flagged) != flagged
    for content in (flagged, without_flag(flagged)):
        assert contents(written(tmp_path / "a.zip", content)) == files


def test_other_names_are_those_of_old_archives(tmp_path: Path) -> None:
    whole = without_flag(zip_bytes({"caf\N{LATIN SMALL LETTER E WITH ACUTE}.txt": b"x"}))
    old = whole.replace("café".encode(), b"caf\x82e")
    assert contents(written(tmp_path / "a.zip", old)) == {"cafée.txt": b"x"}
