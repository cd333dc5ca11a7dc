"""Kept arrays: made once, by one of several processes, whole or absent."""

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from data.tiny import kept

from unitmargin.data import kept as room
from unitmargin.data.files import DataError
from unitmargin.data.kept import find_arrays, keep_arrays, save_array

NUMBERS = np.arange(12, dtype=np.uint8).reshape(4, 3)


class Maker:
    """Writes an array and counts how often; a fault is raised in its place."""

    def __init__(self, fault: BaseException | None = None, pause: float = 0.0) -> None:
        self.fault, self.pause, self.calls = fault, pause, 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        time.sleep(self.pause)
        if self.fault is not None:
            raise self.fault
        save_array(folder, "x", NUMBERS)


def test_arrays_are_made_once_and_mapped(cache: Path) -> None:
    make = Maker()
    for _ in range(2):
        found = keep_arrays(cache, "some", make)
        assert isinstance(found.arrays["x"], np.memmap)
        assert np.array_equal(found.arrays["x"], NUMBERS)
    assert make.calls == 1
    assert kept(cache) == [cache / "some"]


def test_arrays_are_found_where_they_are_whole(cache: Path) -> None:
    assert find_arrays(cache, "some") is None
    assert not cache.exists()
    made = keep_arrays(cache, "some", Maker())
    found = find_arrays(cache, "some")
    assert found is not None
    assert (found.folder, found.sha256) == (made.folder, made.sha256)
    (cache / "some/x.npy").write_bytes(b"")
    assert find_arrays(cache, "some") is None


def test_of_several_makers_one_makes(cache: Path) -> None:
    make = Maker(pause=0.2)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(keep_arrays(cache, "some", make)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert make.calls == 1
    assert all(np.array_equal(result.arrays["x"], NUMBERS) for result in results)
    assert len(results) == 4


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def turn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1] + b"\xff")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("x.npy", cut),
        ("x.npy", turn),
        ("x.npy", Path.unlink),
        ("whole.json", cut),
        ("whole.json", Path.unlink),
        ("whole.json", lambda file: file.write_text("[]")),
        ("whole.json", lambda file: file.write_text('{"format": "other", "files": {}}')),
    ],
)
def test_what_is_damaged_is_made_again(
    cache: Path, name: str, damage: Callable[[Path], object]
) -> None:
    make = Maker()
    keep_arrays(cache, "some", make)
    damage(cache / "some" / name)
    assert np.array_equal(keep_arrays(cache, "some", make).arrays["x"], NUMBERS)
    assert make.calls == 2


def test_a_cache_that_was_removed_is_made_again_and_pages_in_use_stay(cache: Path) -> None:
    make = Maker()
    first = keep_arrays(cache, "some", make)
    for file in (cache / "some").iterdir():
        file.unlink()
    (cache / "some").rmdir()
    assert np.array_equal(keep_arrays(cache, "some", make).arrays["x"], NUMBERS)
    assert np.array_equal(first.arrays["x"], NUMBERS)
    assert make.calls == 2


def test_what_is_refused_leaves_nothing(cache: Path) -> None:
    def refused(folder: Path) -> None:
        save_array(folder, "x", NUMBERS)
        raise DataError("refused")

    with pytest.raises(DataError, match="refused"):
        keep_arrays(cache, "some", refused)
    assert kept(cache) == []


def test_what_an_interruption_left_is_given_to_the_next_one_and_is_no_whole(cache: Path) -> None:
    def half(folder: Path) -> None:
        save_array(folder, "x", NUMBERS)
        raise KeyboardInterrupt

    def rest(folder: Path) -> None:
        assert np.array_equal(np.load(folder / "x.npy"), NUMBERS)
        save_array(folder, "y", NUMBERS)

    with pytest.raises(KeyboardInterrupt):
        keep_arrays(cache, "some", half)
    assert kept(cache) == [cache / "some.begun"]
    assert sorted(keep_arrays(cache, "some", rest).arrays) == ["x", "y"]
    assert kept(cache) == [cache / "some"]


def test_an_interruption_before_anything_was_made_leaves_nothing(cache: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        keep_arrays(cache, "some", Maker(KeyboardInterrupt()))
    assert kept(cache) == []


def test_a_full_disk_is_one_line(cache: Path) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x.npy")
    with pytest.raises(DataError, match=r"cache: must have room .* free in .*: No space left"):
        keep_arrays(cache, "some", Maker(full))
    with pytest.raises(PermissionError):
        keep_arrays(cache, "some", Maker(PermissionError(errno.EPERM, "no", "x.npy")))


def test_a_cache_that_can_only_be_read_gives_what_is_in_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_arrays(cache, "some", Maker())
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    assert np.array_equal(keep_arrays(cache, "some", Maker()).arrays["x"], NUMBERS)
    with pytest.raises(DataError, match="cache: must be a folder that can be written to"):
        keep_arrays(cache, "other", Maker())


def test_an_array_of_another_format_is_not_read(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Maker()
    keep_arrays(cache, "some", make)
    monkeypatch.setattr(room, "FORMAT", "unitmargin-arrays-next")
    keep_arrays(cache, "some", make)
    assert make.calls == 2
