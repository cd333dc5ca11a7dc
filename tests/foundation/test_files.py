"""Files that appear whole or not at all, JSON that any reader takes, and hashes."""

import errno
import hashlib
import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from unitmargin.foundation.files import (
    ABANDONED,
    file_sha256,
    read_hashed,
    read_json,
    require_writable,
    write_aside,
    write_folder_aside,
    write_json,
    write_text,
)


def test_a_file_appears_whole_and_keeps_its_ending(tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    with write_aside(file) as aside:
        aside.write_bytes(b"new")
        assert not file.exists()
        assert (aside.parent, aside.suffix) == (file.parent, ".npz")
    assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError, SystemExit])
def test_a_file_is_left_alone_when_writing_fails(
    tmp_path: Path, before: bytes | None, failure: type[BaseException]
) -> None:
    file = tmp_path / "x"
    if before is not None:
        file.write_bytes(before)

    def write() -> None:
        with write_aside(file) as aside:
            aside.write_bytes(b"half")
            raise failure

    with pytest.raises(failure):
        write()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == (
        {} if before is None else {file: before}
    )


def test_a_block_that_writes_nothing_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"old")
    with pytest.raises(FileNotFoundError), write_aside(file):
        pass
    assert file.read_bytes() == b"old"


def test_a_process_that_is_killed_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"old")
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from unitmargin.foundation.files import write_aside\n"
        "with write_aside(Path(sys.argv[1])) as aside:\n"
        "    aside.write_bytes(b'half')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True)
    assert killed.returncode == -9, killed.stderr
    assert file.read_bytes() == b"old"


def test_parent_folders_are_made(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "x.txt"
    write_text(file, "ε\n")
    assert file.read_bytes() == "ε\n".encode()


def test_writers_of_one_file_never_share_the_file_aside(tmp_path: Path) -> None:
    file = tmp_path / "x"
    contents = [str(number) * 10_000 for number in range(8)]

    def write(content: str) -> Path:
        with write_aside(file) as aside:
            assert not aside.exists()
            for part in range(0, len(content), 1000):
                with aside.open("a") as stream:
                    stream.write(content[part : part + 1000])
            return aside

    with ThreadPoolExecutor(len(contents)) as pool:
        asides = list(pool.map(write, contents))
    assert len(set(asides)) == len(contents)
    assert file.read_text() in contents
    assert list(tmp_path.iterdir()) == [file]


def test_json_is_read_as_it_was_written(tmp_path: Path) -> None:
    content = {"b": [1, 2.5, -1e-300, 1e308], "a": {"text": "ε ∞ NaN", "none": None, "yes": True}}
    write_json(tmp_path / "x.json", content)
    read = read_json(tmp_path / "x.json")
    assert read == content
    assert list(read) == ["b", "a"]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_are_not_written(tmp_path: Path, number: float) -> None:
    file = tmp_path / "x.json"
    write_json(file, {"old": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(file, {"new": [number]})
    assert read_json(file) == {"old": 1}
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": NaN}', "NaN is no finite JSON number"),
        ("[Infinity]", "Infinity is no finite JSON number"),
        ("[[-Infinity]]", "-Infinity is no finite JSON number"),
        ("1e999", "1e999 is no finite JSON number"),
        ("-1.5e400", "-1.5e400 is no finite JSON number"),
        ('{"a": 1, "b": 2, "a": 1}', "a key occurs twice among a, b, a"),
        ('{"outer": {"a": 1, "a": 2}}', "a key occurs twice among a, a"),
        ("{", "Expecting property name"),
        ("", "Expecting value"),
        ("{} {}", "Extra data"),
        ("[" * 100_000, "must not be nested so deeply"),
        ("9" * 5000, "Exceeds the limit"),
    ],
)
def test_what_is_no_strict_json_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_json(file)


@pytest.mark.parametrize("content", [b"", b"one", bytes(range(256)) * 10_000])
def test_the_hash_is_that_of_the_whole_content(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    assert file_sha256(file) == hashlib.sha256(content).hexdigest()


def test_json_holds_what_json_can(tmp_path: Path) -> None:
    unwritable: Any = {"path": tmp_path}
    with pytest.raises(TypeError):
        write_json(tmp_path / "x.json", unwritable)
    assert list(tmp_path.iterdir()) == []


def test_a_file_has_the_permissions_of_any_file(tmp_path: Path) -> None:
    plain, private = tmp_path / "plain", tmp_path / "private"
    plain.touch()
    with write_aside(private) as aside:
        aside.touch(mode=0o600)
    assert private.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("before", [None, "old"])
def test_a_link_stays_a_link(tmp_path: Path, before: str | None) -> None:
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    link.symlink_to(target)
    if before is not None:
        target.parent.mkdir()
        target.write_text(before)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert [path.name for path in target.parent.iterdir()] == ["target"]


def refused(path: Path) -> OSError:
    """What the system says of writing to that path."""
    with pytest.raises(OSError, match=r"\[Errno") as raised:
        write_text(path, "new")
    return raised.value


def test_what_cannot_be_written_is_named_as_the_user_knows_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    long = tmp_path / ("n" * 300)
    for path, code in (
        (tmp_path / "folder", errno.EISDIR), (tmp_path / "loop", errno.ELOOP),
        (long, errno.ENAMETOOLONG),
    ):  # fmt: skip
        error = refused(path)
        assert (error.errno, error.filename) == (code, str(path))
    below = refused(tmp_path / "file" / "x")
    assert (below.errno, below.filename) == (errno.EEXIST, str(tmp_path / "file"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "loop"]


def test_a_file_that_grows_too_large_is_named_and_the_old_one_stays(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("old")
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from unitmargin.foundation.files import write_text\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n    write_text(Path(sys.argv[1]), 'new' * 1000)\n"
        "except OSError as error:\n    print(error.errno, error.filename)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{errno.EFBIG} {file}\n"
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_what_killed_processes_left_is_removed_a_day_later(tmp_path: Path) -> None:
    file = tmp_path / "x[1].csv"
    old, young, foreign, hidden = (
        tmp_path / name
        for name in (
            f".{'a' * 32}-x[1].csv", f".{'b' * 32}-x[1].csv", f".{'c' * 32}-y.csv", ".x[1].csv",
        )
    )  # fmt: skip
    for left in (old, young, foreign, hidden):
        left.write_text("left")
    day_before = time.time() - ABANDONED - 60
    for left in (old, foreign, hidden):
        os.utime(left, (day_before, day_before))
    write_text(file, "new")
    assert set(tmp_path.iterdir()) == {file, young, foreign, hidden}


def test_a_writer_whose_file_was_removed_fails_and_spoils_nothing(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("old")
    with pytest.raises(FileNotFoundError), write_aside(file) as aside:
        aside.unlink(missing_ok=True)
    assert file.read_text() == "old"


def tree(folder: Path) -> dict[str, str | None]:
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("before", [[], ["up"], ["up", "up/old"]])
def test_a_folder_takes_the_place_of_what_was_there(tmp_path: Path, before: list[str]) -> None:
    for name in before:
        path = tmp_path / name
        path.write_text("old") if name == "up/old" else path.mkdir()
    with write_folder_aside(tmp_path / "up") as aside:
        (aside / "new").write_text("new")
        assert sorted(tree(tmp_path / "up")) == [name[3:] for name in before[1:]]
    assert tree(tmp_path) == {"up": None, "up/new": "new"}


@pytest.mark.parametrize("former", [False, True])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError, OSError(errno.ENOSPC, "full")])
def test_a_folder_is_left_alone_when_filling_it_fails(
    tmp_path: Path, former: bool, failure: BaseException | type[BaseException]
) -> None:
    if former:
        write_text(tmp_path / "up/old", "old")
    before = tree(tmp_path)

    def fill() -> None:
        with write_folder_aside(tmp_path / "up") as aside:
            (aside / "half").write_text("half")
            raise failure

    with pytest.raises(type(failure) if isinstance(failure, OSError) else failure):
        fill()
    assert tree(tmp_path) == before


def test_a_folder_that_cannot_be_put_there_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path / "up/old", "old")
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.name.startswith(".") and (self / "new").exists():
            raise OSError(errno.EXDEV, "refused", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with (
        pytest.raises(OSError, match="refused") as raised,
        write_folder_aside(tmp_path / "up") as aside,
    ):
        write_text(aside / "new", "new")
    assert raised.value.filename == str(tmp_path / "up")
    assert tree(tmp_path) == {"up": None, "up/old": "old"}


def test_a_file_that_is_refused_in_a_folder_is_named_there(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match=r"\[Errno") as raised,
        write_folder_aside(tmp_path / "up") as a,
    ):
        write_text(a / ("n" * 300), "x")
    assert raised.value.filename == str(tmp_path / "up" / ("n" * 300))
    assert tree(tmp_path) == {}


def test_folders_that_killed_processes_left_go_a_day_later(tmp_path: Path) -> None:
    left, young, others = (tmp_path / name for name in (f".{'0' * 32}-up", f".{'1' * 32}-up", "x"))
    for folder in (left, young, others):
        write_text(folder / "half", "half")
    old = time.time() - ABANDONED - 60
    for folder in (left, others):
        os.utime(folder, (old, old))
    with write_folder_aside(tmp_path / "up"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [young.name, "up", "x"]


def test_the_old_folder_of_a_killed_writer_outlives_a_writer_that_fails(tmp_path: Path) -> None:
    """Killed between the two renames, it leaves the old folder under a name aside alone."""
    former = tmp_path / f".{'0' * 32}-up"
    write_text(former / "old", "old")
    day_before = time.time() - ABANDONED - 60
    os.utime(former, (day_before, day_before))
    with pytest.raises(KeyboardInterrupt), write_folder_aside(tmp_path / "up"):
        raise KeyboardInterrupt
    assert (former / "old").read_text() == "old"
    with write_folder_aside(tmp_path / "up") as aside:
        write_text(aside / "new", "new")
    assert tree(tmp_path) == {"up": None, "up/new": "new"}


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    write_text(tmp_path / "elsewhere/old", "old")
    (tmp_path / "up").symlink_to("elsewhere")
    with write_folder_aside(tmp_path / "up") as aside:
        (aside / "new").write_text("new")
    assert (tmp_path / "up").is_symlink()
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["new"]


def test_the_hash_of_a_file_is_that_of_what_was_read(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"one")
    assert read_hashed(file, Path.read_bytes) == (b"one", hashlib.sha256(b"one").hexdigest())
    with pytest.raises(ValueError, match="x must stay as it is while it is read, got another"):
        read_hashed(file, lambda path: path.write_bytes(b"two"))
    with pytest.raises(FileNotFoundError, match="none"):
        read_hashed(tmp_path / "none", Path.read_bytes)


def test_a_place_that_cannot_be_written_is_found_before_the_work(tmp_path: Path) -> None:
    require_writable(tmp_path / "new" / "a.txt")
    assert (tmp_path / "new").is_dir()
    assert not [*(tmp_path / "new").iterdir()]
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="File exists|Not a directory"):
        require_writable(tmp_path / "file" / "a.txt")
    with pytest.raises(IsADirectoryError):
        require_writable(tmp_path / "new")
    (tmp_path / "link").symlink_to("/proc/nowhere/a.txt")
    with pytest.raises(OSError, match="nowhere|/proc"):
        require_writable(tmp_path / "link")


def test_a_pipe_stays_one(tmp_path: Path) -> None:
    """So do devices, of which a process with all rights would destroy that of the system."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(OSError, match="No file takes the place of a device") as raised:
            write_text(path, "x")
        assert raised.value.filename == str(path)
        assert pipe.is_fifo()
        with pytest.raises(OSError, match="No file takes the place of a device"):
            require_writable(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]
