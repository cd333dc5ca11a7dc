"""Folders and archives: read alike, damaged ones refused, and a fingerprint of the content."""

import bz2
import gzip
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


@pytest.mark.parametrize("target", ["a.txt", "deep", "absent", "/etc/hostname", ".."])
def test_symbolic_links_in_folders_are_refused(tmp_path: Path, target: str) -> None:
    folder = write_folder(tmp_path / "data", FILES)
    (folder / "top/odd").symlink_to(target)
    for read in (contents, fingerprint):
        with pytest.raises(DataError, match=f"{folder}: must hold files.*symbolic link top/odd;"):
            read(folder)


def test_pipes_in_folders_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=f"{tmp_path}: must hold files.*pipe or device pipe;"):
        contents(tmp_path)


def test_a_folder_may_be_named_by_a_link(tmp_path: Path) -> None:
    write_folder(tmp_path / "data", FILES)
    (tmp_path / "link").symlink_to("data")
    assert contents(tmp_path / "link") == FILES


def test_a_folder_that_cannot_be_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "data", FILES)
    scan = os.scandir

    def closed(path: str) -> object:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(DataError, match=f"{folder}: must be readable.*denied.*top/deep"):
        contents(folder)


@pytest.mark.parametrize("archive", [True, False])
def test_hidden_files_are_left_out_whatever_they_are(tmp_path: Path, archive: bool) -> None:
    path = tmp_path / "data"
    hidden = FILES | {".a": b"", "top/.git/a": b"", ".deep/x/b": b""}
    if archive:
        links = {".link": "/etc/hostname"}
        path.write_bytes(tar_bytes(hidden, links=links, kind=tarfile.SYMTYPE))
    else:
        write_folder(path, hidden)
        (path / ".link").symlink_to("/etc")
        (path / ".git").symlink_to("absent")
    assert contents(path) == FILES


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 5000, b"PK\x03\x04" + bytes(3000)])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.tar"
    path.write_bytes(content)
    with pytest.raises(DataError, match="whole tar file"):
        contents(path)


def test_a_missing_path_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "absent"
    with pytest.raises(DataError, match=f"{path}: must be a folder or a tar or zip archive"):
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


def test_the_fingerprint_of_a_folder_is_that_of_its_content(tmp_path: Path) -> None:
    folder, copy = (write_folder(tmp_path / name, FILES) for name in ("data", "copy"))
    first = fingerprint(folder)
    os.utime(folder / "top/a.txt", ns=(1, 1))
    assert fingerprint(folder) == fingerprint(copy) == first
    seen = {first}
    (copy / "top/deep/b.txt").rename(copy / "top/deep/c.txt")
    (folder / "top/a.txt").write_bytes(FILES["top/a.txt"].swapcase())
    os.utime(folder / "top/a.txt", ns=(1, 1))
    seen |= {fingerprint(copy), fingerprint(folder)}
    (folder / "top/empty").mkdir()
    seen.add(fingerprint(folder))
    assert len(seen) == 4


def test_a_name_that_is_no_text_has_a_fingerprint(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"")
    assert len(fingerprint(tmp_path)) == 64
