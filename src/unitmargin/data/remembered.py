"""Hashes of files that are not read again while the system says that nothing has changed."""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from unitmargin.data.cache import cache_place
from unitmargin.data.files import explained, fingerprint, listing
from unitmargin.foundation.files import read_json, write_json

SETTLED = 2_000_000_000
"""Nanoseconds after its last change in which a file is not remembered: on some file systems two
changes within one or two seconds have one time."""

TELLS_CHANGES = os.name == "posix"
"""Whether the system keeps a time of the last change that no program can set; Windows has none."""

SOURCES = ".sources"
"""Folder of the cache folder that remembers fingerprints of data."""

Named = Iterable[tuple[str, Path]]


def remembered(memory: Path, files: Named, compute: Callable[[], str]) -> str:
    """What ``compute`` says of some files, not computed again while none of them has changed.

    Size and time of a file are set back by copies and archives, so they are believed only with the
    time of the last change of its state (ctime), which every change sets and no program can.

    Args:
        memory: file that keeps it; where nothing can be written, nothing is remembered.
        files: what the answer depends on, with names that it depends on, too.
        compute: is called where nothing is remembered, or something else.

    Raises:
        DataError: a file that is not there.

    Example:
        >>> remembered(Path("a.json"), [("a", Path("a"))], lambda: "hash of a")  # doctest: +SKIP
        'hash of a'
    """
    now = time.time_ns()
    state, newest = _state(files)
    with suppress(OSError, ValueError):
        known = read_json(memory)
        if isinstance(known, dict) and known.get("state") == state and TELLS_CHANGES:
            return str(known["answer"])
    answer = compute()
    _write(memory, answer, state, newest, now)
    return answer


def remember(memory: Path, files: Named, answer: str) -> None:
    """Keep an answer that was found of files which nobody else writes; see :func:`remembered`."""
    _write(memory, answer, *_state(files), time.time_ns())


def remembered_fingerprint(path: Path, cache: Path | None) -> str:
    """:func:`fingerprint`, not computed again while no file below the path has changed."""
    memory = source_memory(cache, str(path.resolve()))
    files = listing(path) if path.is_dir() else [("", path)]
    return remembered(memory, files, lambda: fingerprint(path))


def source_memory(cache: Path | None, what: str) -> Path:
    """The file of the cache folder that remembers something of data by that name."""
    name = hashlib.sha256(os.fsencode(what)).hexdigest()
    return cache_place(cache) / SOURCES / f"{name}.json"


def _write(memory: Path, answer: str, state: str, newest: int, now: int) -> None:
    if newest < now - SETTLED and TELLS_CHANGES:
        with suppress(OSError):  # a cache that can only be read
            write_json(memory, {"state": state, "answer": answer})


def _state(files: Named) -> tuple[str, int]:
    """A hash of names and states, and when the last of them changed."""
    digest, newest = hashlib.sha256(), 0
    for name, file in files:
        with explained(file):
            found = file.stat()
        facts = found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
        is_folder = stat.S_ISDIR(found.st_mode)  # what a folder holds has names of its own
        words = f"{name}\0{'folder' if is_folder else facts}\0"
        digest.update(os.fsencode(words))
        newest = newest if is_folder else max(newest, found.st_ctime_ns)
    return digest.hexdigest(), newest
