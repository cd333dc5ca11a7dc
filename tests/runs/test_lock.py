"""The lock of a run folder: one writer, whose name the others are told."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import pytest

from unitmargin.runs.lock import HOLDER, LockedError, given_names, hold

HOLD = """
import sys, time
from pathlib import Path
from unitmargin.runs.lock import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_arguments_that_are_no_unicode_are_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Python gives the bytes of a file name in another encoding."""
    monkeypatch.setattr(sys, "argv", ["unitmargin", "certify", "n\udce9w.npy"])
    with hold(tmp_path):
        assert r"(unitmargin certify 'n\udce9w.npy')" in (tmp_path / HOLDER).read_text()


def test_who_comes_second_is_told_who_holds_it(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    message = (
        f"{tmp_path} is being written by process {holder.pid} on .* since .*; wait until that ends"
    )
    with pytest.raises(LockedError, match=message), hold(tmp_path):
        pass


def test_a_process_that_was_killed_holds_nothing(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with hold(tmp_path):
        assert f"process {os.getpid()} " in (tmp_path / HOLDER).read_text()


def test_a_folder_is_let_go_after_success_and_failure(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with pytest.raises(KeyboardInterrupt), hold(folder):
        raise KeyboardInterrupt
    with hold(folder):
        pass
    assert not (folder / HOLDER).exists()


def test_what_processes_leave_in_a_folder_is_nothing_that_was_given(tmp_path: Path) -> None:
    assert given_names(tmp_path / "none") == set()
    for name in ("x.csv", ".git", f".{'0' * 32}-x.csv", f".{'0' * 31}-x.csv"):
        (tmp_path / name).touch()
    with hold(tmp_path):
        assert (tmp_path / HOLDER).is_file()
        assert given_names(tmp_path) == {"x.csv", ".git", f".{'0' * 31}-x.csv"}


def test_a_step_that_has_worked_for_long_waits(tmp_path: Path) -> None:
    held, done = Event(), Event()

    def write() -> None:
        with hold(tmp_path):
            held.set()
            done.wait(10)

    other = Thread(target=write)
    other.start()
    held.wait(10)
    with pytest.raises(LockedError), hold(tmp_path):
        pass
    done.set()
    with hold(tmp_path, patience=30.0):
        other.join()
