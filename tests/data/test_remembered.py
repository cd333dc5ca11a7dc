"""Hashes that are remembered while the system says that nothing has changed."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from unitmargin.data import remembered as room
from unitmargin.data.remembered import remember, remembered, remembered_fingerprint


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.write_bytes(b"first")
    return made


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file counts as settled after a hundredth of a second, and that has passed."""
    monkeypatch.setattr(room, "SETTLED", 10_000_000)


class Counted:
    """Counts how often a file is read."""

    def __init__(self, file: Path) -> None:
        self.file, self.calls = file, 0

    def __call__(self) -> str:
        self.calls += 1
        return self.file.read_text()


def ask(tmp_path: Path, file: Path, compute: Callable[[], str]) -> str:
    time.sleep(0.02)
    return remembered(tmp_path / "memory.json", [("data", file)], compute)


def test_a_file_is_read_once(tmp_path: Path, file: Path) -> None:
    read = Counted(file)
    assert [ask(tmp_path, file, read) for _ in range(3)] == ["first"] * 3
    assert read.calls == 1


def test_a_file_of_the_same_size_and_time_is_read_again(tmp_path: Path, file: Path) -> None:
    read, state = Counted(file), file.stat()
    ask(tmp_path, file, read)
    file.write_bytes(b"other")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)
    assert ask(tmp_path, file, read) == "other"


def test_a_file_that_has_just_changed_is_not_believed(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "SETTLED", 10**12)
    read = Counted(file)
    for _ in range(2):
        ask(tmp_path, file, read)
    assert read.calls == 2
    remember(tmp_path / "memory.json", [("data", file)], "first")
    assert not (tmp_path / "memory.json").exists()


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"state": 3}'])
def test_a_damaged_memory_is_no_memory(tmp_path: Path, file: Path, damage: str) -> None:
    read = Counted(file)
    ask(tmp_path, file, read)
    (tmp_path / "memory.json").write_text(damage)
    assert ask(tmp_path, file, read) == "first"
    assert read.calls == 2


def test_where_nothing_can_be_written_all_is_read(tmp_path: Path, file: Path) -> None:
    read = Counted(file)
    for _ in range(2):
        time.sleep(0.02)
        assert remembered(file / "memory.json", [("data", file)], read) == "first"
    assert read.calls == 2


def test_a_name_and_an_empty_folder_are_part_of_a_fingerprint(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "cat").mkdir(parents=True)
    (folder / "cat/1").write_bytes(b"x")
    seen = []
    for change in (
        lambda: None,
        (folder / "dog").mkdir,
        lambda: (folder / "cat/1").rename(folder / "cat/2"),
    ):
        change()
        time.sleep(0.02)
        seen += [remembered_fingerprint(folder, tmp_path / "cache") for _ in range(2)]
    assert seen[0] == seen[1] != seen[2] == seen[3] != seen[4]
    assert len(set(seen)) == 3
