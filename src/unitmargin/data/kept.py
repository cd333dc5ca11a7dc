"""Arrays kept in the cache folder: made once, mapped by every process that needs them."""

import os
from collections.abc import Callable
from pathlib import Path
from shutil import disk_usage, rmtree
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from unitmargin.data.cache import CACHE_VARIABLE, cache_folder, cache_place
from unitmargin.data.files import DataError
from unitmargin.data.npy import map_array
from unitmargin.data.remembered import remember, remembered
from unitmargin.foundation.failures import SPACE
from unitmargin.foundation.files import file_sha256, read_json, write_json

FORMAT = "unitmargin-arrays-1"

FACTS = "whole.json"
"""Written last: length and SHA-256 of each file."""

SEEN = "seen"
"""Ends the names of files that remember a hash; see :func:`remembered`."""

BEGUN = ".begun"
"""Ends the name of a folder that is not whole: what was made so far."""

Arrays = dict[str, NDArray[Any]]


class Kept(NamedTuple):
    """Arrays of a folder, mapped, and the SHA-256 of the file of each."""

    folder: Path
    arrays: Arrays
    sha256: dict[str, str]


def keep_arrays(cache: Path | None, name: str, make: Callable[[Path], None]) -> Kept:
    """The arrays of that name in the cache folder, made where they are not there.

    They lie in a folder as ``.npy`` files with their lengths and hashes, and are mapped: their
    memory is that of pages in use, which all processes of the machine share. Of several processes
    one makes them, and the others wait.

    Args:
        name: says what they are made of, by content.
        make: writes ``.npy`` files into a folder; is given what was made so far of one that was
            interrupted. A :class:`DataError` means that there is nothing to keep.

    Guarantee: a folder of that name is absent or whole, whatever happens to the process; what is
    damaged is made again.

    Raises:
        DataError: the cache folder cannot be written to, or has no room; what ``make`` refuses.
    """
    folder = cache_place(cache) / name
    try:
        return _read(folder)
    except DataError:
        pass
    cache_folder(cache)
    try:
        with FileLock(folder.with_name(f".{name}.lock")):
            return _made(folder, make)
    except OSError as fault:
        if fault.errno not in SPACE:
            raise
        raise DataError(
            f"cache: must have room for decoded data, got {disk_usage(folder.parent).free} bytes "
            f"free in {folder.parent}: {fault.strerror}; free some, or set {CACHE_VARIABLE} to a "
            "folder on another disk"
        ) from fault


def unchanged(
    path: Path, content: str, fingerprint: Callable[[], str], make: Callable[[Path], None]
) -> Callable[[Path], None]:
    """``make``, refused where the data has another fingerprint after it than before: what it wrote
    would be kept under the name of what it has not read."""

    def checked(folder: Path) -> None:
        make(folder)
        if fingerprint() != content:
            raise changed_data(path, "another content")

    return checked


def changed_data(path: Path, got: str) -> DataError:
    """The error for data that was written to while it was read."""
    return DataError(f"{path}: must stay as it is while it is read, got {got}; load it again")


def find_arrays(cache: Path | None, name: str) -> Kept | None:
    """The arrays of that name in the cache folder, None where they are not there or not whole."""
    try:
        return _read(cache_place(cache) / name)
    except DataError:
        return None


def _made(folder: Path, make: Callable[[Path], None]) -> Kept:
    try:
        return _read(folder)  # another process has made it
    except DataError:
        rmtree(folder, ignore_errors=True)
    begun = folder.with_name(folder.name + BEGUN)
    begun.mkdir(exist_ok=True)
    try:
        make(begun)
    except DataError:
        rmtree(begun, ignore_errors=True)
        raise
    except BaseException:
        if not any(begun.iterdir()):
            begun.rmdir()
        raise
    _seal(begun)
    begun.rename(folder)
    return _read(folder)


def _seal(folder: Path) -> None:
    files = {}
    for file in sorted(folder.glob("*.npy")):
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
        sha256 = file_sha256(file)
        files[file.name] = {"bytes": file.stat().st_size, "sha256": sha256}
        remember(_memory(file), [(file.name, file)], sha256)
    write_json(folder / FACTS, {"format": FORMAT, "files": files})


def _read(folder: Path) -> Kept:
    """Raises a DataError unless all files are there as they were made."""
    try:
        facts = read_json(folder / FACTS)
        if facts["format"] != FORMAT:
            raise ValueError(f"format must be {FORMAT}, got {facts['format']}")
        arrays, hashes = {}, {}
        for name, fact in facts["files"].items():
            arrays[Path(name).stem] = _mapped(folder / name, fact["bytes"], fact["sha256"])
            hashes[Path(name).stem] = fact["sha256"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as fault:
        raise DataError(f"{folder}: must hold kept arrays, got: {fault}; remove it") from fault
    return Kept(folder, arrays, hashes)


def _mapped(file: Path, length: int, sha256: str) -> NDArray[Any]:
    if file.stat().st_size != length:
        raise ValueError(f"{file.name} must have {length} bytes, got {file.stat().st_size}")
    if remembered(_memory(file), [(file.name, file)], lambda: file_sha256(file)) != sha256:
        raise ValueError(f"{file.name} must have the SHA-256 {sha256}, got another one")
    return map_array(file)


def _memory(file: Path) -> Path:
    return file.with_suffix(f".{SEEN}")


def save_array(folder: Path, name: str, array: NDArray[Any]) -> None:
    """Write one array whole, into the folder that ``make`` of :func:`keep_arrays` is given."""
    np.save(folder / f"{name}.npy", array, allow_pickle=False)
