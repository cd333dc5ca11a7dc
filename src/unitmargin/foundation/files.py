"""Files that appear whole or not at all, JSON without numbers that JSON does not have, hashes."""

import errno
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar
from uuid import uuid4

Content = TypeVar("Content")

ABANDONED = 24 * 60 * 60
"""Seconds without a change after which a file aside is one that a killed process left: writers of
minutes are far below it, clocks that differ are none, since the file system dates both files."""


ASIDE = r"\.[0-9a-f]{32}-"
"""How names of files and folders aside begin; what they stand for follows."""


@contextmanager
def write_aside(path: Path) -> Iterator[Path]:
    """A file beside ``path`` to be written, which takes its place when the block ends.

    Guarantee: ``path`` is absent, old or whole, whatever happens to the process. No two processes
    share the file beside it, which is removed if the block fails; what killed processes left beside
    ``path`` is removed a day later. A link stays a link, and the permissions are those of any file
    that the user makes.

    Raises:
        OSError: a device, a pipe or a socket, which a file would replace, and what the system
            refuses; it names ``path``, not the file beside it.
    """
    _require_plain(path)
    target = _followed(path)
    aside = target.with_name(f".{uuid4().hex}-{target.name}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside.touch()
        made = aside.stat()
        aside.unlink()
        _remove_abandoned(target, made.st_mtime)
        yield aside
        aside.chmod(made.st_mode)  # some writers keep their files private
        aside.replace(target)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(aside)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


@contextmanager
def write_folder_aside(path: Path) -> Iterator[Path]:
    """A folder beside ``path`` to be filled, which takes its place when the block ends.

    Guarantee: ``path`` is absent, old or whole; whoever looks at the moment when a new folder takes
    the place of an old one may find none. If the block fails, all is as it was; what processes left
    that were killed, beside ``path``, is removed a day later by the first that ends well: it may be
    the old folder. A link stays a link.

    Raises:
        OSError: what the system refuses; it names ``path``, not the folder beside it.
    """
    target = _followed(path)
    aside, former = (target.with_name(f".{uuid4().hex}-{target.name}") for _ in range(2))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside.mkdir()
        made = aside.stat()
        yield aside
        try:
            if target.exists():
                target.rename(former)
            aside.rename(target)
        except BaseException:
            with suppress(OSError):  # there was none
                former.rename(target)
            raise
        rmtree(former, ignore_errors=True)
        # Not before: the old folder may be among it, if its writer was killed as it took its place.
        with suppress(OSError):
            _remove_abandoned(target, made.st_mtime)
    except OSError as error:
        if error.errno is None or not str(error.filename).startswith(str(aside)):
            raise
        name = str(error.filename).replace(str(aside), str(path), 1)
        raise OSError(error.errno, error.strerror, name) from error
    finally:
        rmtree(aside, ignore_errors=True)


def _followed(path: Path) -> Path:
    """Where a path leads."""
    try:
        return path.resolve() if path.is_symlink() else path
    except RuntimeError:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None


def _remove_abandoned(target: Path, now: float) -> None:
    """Remove what killed processes left beside a file or folder.

    Of a process that still writes to what is removed here, the writing fails: no file is spoiled.
    """
    left = re.compile(ASIDE + re.escape(target.name))
    for file in target.parent.iterdir():
        with suppress(OSError):  # another process may have removed it
            if left.fullmatch(file.name) and file.lstat().st_mtime < now - ABANDONED:
                rmtree(file) if file.is_dir() else file.unlink()


def is_aside(name: str) -> bool:
    """Whether a file or folder of that name is one aside, which a writer fills or has left.

    Example:
        >>> is_aside(f".{uuid4().hex}-x.csv"), is_aside(".x.csv")
        (True, False)
    """
    return re.match(ASIDE, name) is not None


def write_text(path: Path, text: str) -> None:
    """Write a text file; see :func:`write_aside`."""
    with write_aside(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write JSON with sections kept in the given order; see :func:`write_aside`.

    Raises:
        ValueError: a number that is not finite.
    """
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read what :func:`write_json` wrote.

    Raises:
        ValueError: no JSON, a number that is not finite, a key that occurs twice, or too deep a
            nesting.
    """
    return parse_json(path.read_text(encoding="utf-8"))


def parse_json(text: str) -> Any:
    """The content of strict JSON; see :func:`read_json`."""
    hooks: dict[str, Any] = {
        "parse_int": _whole,
        "parse_float": _finite,
        "parse_constant": _finite,
    }
    try:
        return json.loads(text, object_pairs_hook=_unique, **hooks)
    except RecursionError:
        raise ValueError("its lists and objects must not be nested so deeply") from None


def _whole(text: str) -> int:
    if text == "-0":
        raise ValueError("-0 is no whole JSON number")
    return int(text)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no finite JSON number")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError(f"a key occurs twice among {', '.join(key for key, _ in pairs)}")
    return table


def as_path(what: str, value: object) -> Path:
    """A path of any kind as a ``Path``.

    Raises:
        TypeError: neither a path nor a str.
        ValueError: a null character, which no file has in its name.
    """
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise TypeError(
            f"{what} must be a path, got {type(value).__name__}; pass a str or a pathlib.Path"
        )
    if "\0" in os.fspath(value):
        raise ValueError(f"{what} must hold no null character, got {str(value)!r}; leave it out")
    return Path(value)


def require_path(what: str, value: object) -> Path:
    """The path of a file that need not exist.

    Raises:
        TypeError: neither a path nor a str.
        ValueError: a folder.
    """
    path = as_path(what, value)
    if path.is_dir():
        raise ValueError(f"{what} must be a file, got the folder {path}; add the file's name")
    return path


def file_sha256(path: Path) -> str:
    """Hash of a whole file, as ``sha256sum`` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_hashed(path: Path, read: Callable[[Path], Content]) -> tuple[Content, str]:
    """What a function makes of a file, and the SHA-256 of the content that it read.

    Raises:
        ValueError: a file that was replaced meanwhile; of one that is missing, what ``read`` says.
    """
    before = file_sha256(path) if path.is_file() else ""
    content = read(path)
    if file_sha256(path) != before:
        raise ValueError(
            f"{path} must stay as it is while it is read, got another content; read it again when "
            "nobody writes to it"
        )
    return content, before


def require_hash(name: str, stored: str, file: Path) -> None:
    """Raise a ValueError unless a stored SHA-256 is that of the file as it lies there."""
    found = file_sha256(file)
    if stored != found:
        raise ValueError(f"{name} must be {found}, that of {file.name}, got {stored}")


def require_writable(file: Path) -> None:
    """Raise an OSError now rather than after hours of work for a file that cannot be written; its
    folder is made."""
    _require_plain(file)
    target = _followed(file)
    target.parent.mkdir(parents=True, exist_ok=True)
    with nameless_file(target.parent):
        pass


@contextmanager
def nameless_file(place: Path) -> Iterator[IO[bytes]]:
    """A file without a name on the disk of a folder, which need not exist yet: it ends with the
    block, or with the process, whatever ends it.

    Raises:
        OSError: what the system refuses, a folder below a file included; it names the folder.
    """
    there = next(path for path in (place, *place.parents) if os.path.lexists(path))
    made = False
    try:
        with TemporaryFile(dir=there) as file:
            made = True
            yield file
    except OSError as error:  # before it is made, of a name that nobody gave
        if error.errno is None or (made and error.filename is not None):
            raise
        raise OSError(error.errno, error.strerror, str(there)) from error


def _require_plain(path: Path) -> None:
    """Raise for what is there and no file."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        what = "No file takes the place of a device, a pipe or a socket"
        raise OSError(errno.ENOTSUP, what, str(path))
