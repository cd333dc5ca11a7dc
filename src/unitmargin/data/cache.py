"""The folder where downloads and decoded images are kept."""

import os
from pathlib import Path

from unitmargin.data.files import DataError

CACHE_VARIABLE = "UNITMARGIN_CACHE"


def cache_folder(cache: Path | None = None) -> Path:
    """The cache folder: ``cache``, else ``$UNITMARGIN_CACHE``, else ``~/.cache/unitmargin``.

    Raises:
        DataError: a folder that can neither be found nor made, or not be written to.

    Example:
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


def _refusal(folder: Path, fault: OSError | str) -> str:
    return (
        f"cache: must be a folder that can be written to, got {folder}: {fault}; "
        f"pass another one or set {CACHE_VARIABLE}"
    )
