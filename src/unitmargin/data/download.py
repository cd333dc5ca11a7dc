"""Downloads, kept in the cache folder and recognised by their SHA-256."""

import urllib.request
from pathlib import Path

from tqdm import tqdm

from unitmargin.data.files import CHUNK, DataError, fingerprint
from unitmargin.foundation.files import write_aside

TIMEOUT_SECONDS = 60


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
    with write_aside(file) as aside:
        _fetch(url, aside)
        found = fingerprint(aside)
        if found != sha256:
            raise DataError(
                f"{url}: must have SHA-256 {sha256}, got {found}; "
                "try again, or fetch the file by other means and pass its path"
            )
    return file


def _fetch(url: str, aside: Path) -> None:
    try:
        with (
            urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response,
            aside.open("wb") as target,
            tqdm(desc=url, unit="B", unit_scale=True, disable=None) as bar,
        ):
            bar.total = int(response.headers.get("Content-Length") or 0) or None
            while chunk := response.read(CHUNK):
                target.write(chunk)
                bar.update(len(chunk))
    except OSError as fault:
        raise DataError(
            f"{url}: the download failed: {fault}; "
            "try again, or fetch the file by other means and pass its path"
        ) from fault
