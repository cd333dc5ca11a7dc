"""Tar archives of any packing are read whole or refused, and links in them are files."""

import bz2
import gzip
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from data.tiny import tar_bytes

from unitmargin.data.files import DataError, members

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


@pytest.mark.parametrize("pack", PACKERS)
def test_hard_links_in_archives_are_files(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "data.tar"
    links = {"b": "./top/a.txt", "c/d": "b", "./e": "top/deep/b.txt"}
    path.write_bytes(pack(tar_bytes(FILES, links=links)))
    first, second = FILES.values()
    assert contents(path) == FILES | {"b": first, "c/d": first, "e": second}


def test_a_hard_link_keeps_the_content_of_its_time(tmp_path: Path) -> None:
    path = tmp_path / "data.tar"
    first = tar_bytes({"a": b"old", ".pool": b"kept"}, links={"b": "a", "c": ".pool"})
    path.write_bytes(first[: 6 * 512] + tar_bytes({"a": b"new"}, links={"d": "a"}))
    assert contents(path) == {"a": b"new", "b": b"old", "c": b"kept", "d": b"new"}


@pytest.mark.parametrize("target", ["absent", "top/deep", "/etc/hostname", "z"])
def test_a_hard_link_to_no_earlier_file_is_refused(tmp_path: Path, target: str) -> None:
    path = tmp_path / "data.tar"
    archive = tar_bytes(FILES, folders=("top/deep",), links={"odd": target, "z": "top/a.txt"})
    path.write_bytes(archive)
    with pytest.raises(DataError, match=f"{path}: a hard link must name .*got odd, .*{target};"):
        contents(path)


@pytest.mark.parametrize("name", ["../a", "top/../../a"])
def test_names_outside_of_an_archive_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(tar_bytes({name: b""}))
    (tmp_path / "link").write_bytes(tar_bytes({}, links={"a": name}))
    for path in (tmp_path / "file", tmp_path / "link"):
        with pytest.raises(DataError, match=f"{path}: names must stay inside .*got {name};"):
            contents(path)


def test_names_that_mean_one_file_are_one_name(tmp_path: Path) -> None:
    path = tmp_path / "data.tar"
    path.write_bytes(tar_bytes({"././a//b": b"1", "/c/./d": b"2"}, folders=("./", "./a/")))
    assert [member.name for member in members(path)] == ["a", "a/b", "c/d"]


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (tarfile.SYMTYPE, "symbolic link"),
        (tarfile.FIFOTYPE, "pipe or device"),
        (tarfile.CHRTYPE, "pipe or device"),
        (tarfile.BLKTYPE, "pipe or device"),
    ],
)
def test_what_is_no_file_in_an_archive_is_refused(tmp_path: Path, kind: bytes, what: str) -> None:
    path = tmp_path / "data.tar"
    path.write_bytes(tar_bytes(FILES, links={"top/odd": "a.txt"}, kind=kind))
    with pytest.raises(DataError, match=f"{path}: must hold files.*the {what} top/odd; put"):
        contents(path)
