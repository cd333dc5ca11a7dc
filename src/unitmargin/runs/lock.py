"""The lock of a run folder: one process writes, and the others are told which."""

import os
import platform
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from unitmargin.foundation.files import is_aside, write_text

LOCK = ".lock"
PATIENCE = 60.0
"""Seconds that a step which has worked for long waits for another one that writes."""

HOLDER = ".holder"
"""Names the process that holds the lock; a lock file's own content is lost to whoever tries it."""


class LockedError(RuntimeError):
    """A folder that another process is writing to."""


@contextmanager
def hold(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """Hold a folder for this process while the block runs.

    Args:
        patience: seconds to wait for another process that holds it.

    Guarantee: no two processes of one machine hold it at once; a process that ends, however it
    does, lets go.

    Raises:
        LockedError: another process holds it; the message says which.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock, holder = FileLock(folder / LOCK, timeout=patience), folder / HOLDER
    try:
        lock.acquire()
    except Timeout:
        raise LockedError(
            f"{folder} is being written by {_read(holder)}; wait until that ends"
        ) from None
    try:
        write_text(holder, _this_process())
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def given_names(folder: Path) -> set[str]:
    """Names of what lies in a folder, without what processes leave there that hold it: the lock,
    and files aside. None of a folder that is absent."""
    names = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    return {name for name in names if name not in (LOCK, HOLDER) and not is_aside(name)}


def _this_process() -> str:
    """In words, in which bytes that are no Unicode are escaped."""
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    command = command.encode(errors="backslashreplace").decode()
    started = datetime.now().astimezone().isoformat(" ", "seconds")
    return f"process {os.getpid()} on {platform.node()} since {started} ({command})"


def _read(holder: Path) -> str:
    try:
        return " ".join(holder.read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return "another process"
