"""The folder where downloads and decoded images are kept, and how a file gets there whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from unitmargin.data.files import DataError

CACHE_VARIABLE = "UNITMARGIN_CACHE"


def cache_folder(cache: Path | None = None) -> Path:
    """Return the cache folder, made if need be.

    It is `cache`, else the environment variable `UNITMARGIN_CACHE`, else `~/.cache/unitmargin`.
    Raises `DataError` if it cannot be made or written to.

    >>> cache_folder(Path("cache"))  # doctest: +SKIP
    PosixPath('cache')
    """
    chosen = cache or Path(os.environ.get(CACHE_VARIABLE) or "~/.cache/unitmargin")
    folder = chosen.expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise DataError(_refusal(folder, fault)) from fault
    if not os.access(folder, os.W_OK):
        raise DataError(_refusal(folder, "no permission to write"))
    return folder


@contextmanager
def written_aside(file: Path) -> Iterator[Path]:
    """Give a path to write to, renamed to `file` when the block ends and removed if it fails.

    Guaranteed: `file` is absent, old or whole, whatever happens to the process.
    """
    aside = file.with_name(f".{uuid4().hex}-{file.name}")
    try:
        yield aside
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)


def _refusal(folder: Path, fault: OSError | str) -> str:
    return (
        f"cache: must be a folder that can be written to, got {folder}: {fault}; "
        f"pass another one or set {CACHE_VARIABLE}"
    )
