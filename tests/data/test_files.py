"""Folders and archives: read alike, and a fingerprint of the content."""

import os
import tarfile
from pathlib import Path

import pytest
from data.tiny import tar_bytes, write_folder

from unitmargin.data.files import DataError, fingerprint, members

FILES = {"top/a.txt": b"first" * 300, "top/deep/b.txt": bytes(range(256)) * 8}


def contents(path: Path) -> dict[str, bytes]:
    return {member.name: member.read() for member in members(path) if not member.is_folder}


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
