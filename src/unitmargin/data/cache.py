"""The folder where decoded images and downloads are kept."""

import os
import urllib.request
from http.client import HTTPException
from pathlib import Path

from tqdm.auto import tqdm

from unitmargin.data.files import CHUNK, DataError, fingerprint
from unitmargin.foundation.files import write_aside

CACHE_VARIABLE = "UNITMARGIN_CACHE"


def cache_place(cache: Path | None = None) -> Path:
    """Where the cache folder is: ``cache``, else ``$UNITMARGIN_CACHE``, else
    ``~/.cache/unitmargin``; it need not be there."""
    chosen = cache or Path(os.environ.get(CACHE_VARIABLE) or "~/.cache/unitmargin")
    return chosen.expanduser()


def cache_folder(cache: Path | None = None) -> Path:
    """The cache folder, made if need be, to be written to; see :func:`cache_place`.

    Raises:
        DataError: a folder that can neither be found nor made, or not be written to.

    Example:
        >>> cache_folder(Path("cache"))  # doctest: +SKIP
        PosixPath('cache')
    """
    folder = cache_place(cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError("no permission to write")
    except OSError as fault:
        raise DataError(
            f"cache: must be a folder that can be written to, got {folder}: {fault}; "
            f"pass another one or set {CACHE_VARIABLE}"
        ) from fault
    return folder


def download(url: str, sha256: str, folder: Path) -> Path:
    """The file of ``url``, from ``folder`` if it is there already.

    Guarantee: the file has the given SHA-256; a damaged copy is fetched again.

    Raises:
        DataError: the download fails or has another digest; nothing is left behind then.

    Example:
        >>> download("https://example.org/data.tar.gz", "e3b0...", Path("cache"))  # doctest: +SKIP
        PosixPath('cache/data.tar.gz')
    """
    file = folder / url.rpartition("/")[2]
    if file.is_file() and fingerprint(file) == sha256:
        return file
    advice = "try again, or fetch the file by other means and pass its path"
    with write_aside(file) as aside:
        try:
            _fetch(url, aside)
        except (OSError, HTTPException) as fault:
            raise DataError(f"{url}: the download failed: {fault}; {advice}") from fault
        found = fingerprint(aside)
        if found != sha256:
            raise DataError(f"{url}: must have SHA-256 {sha256}, got {found}; {advice}")
    return file


def _fetch(url: str, aside: Path) -> None:
    with (
        urllib.request.urlopen(url, timeout=60) as response,
        aside.open("wb") as target,
        tqdm(desc=url, unit="B", unit_scale=True, disable=None) as bar,
    ):
        bar.total = int(response.headers.get("Content-Length") or 0) or None
        while chunk := response.read(CHUNK):
            target.write(chunk)
            bar.update(len(chunk))
