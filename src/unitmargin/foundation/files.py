"""Files that appear whole or not at all."""

import csv
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def write_aside(path: Path) -> Iterator[Path]:
    """A file beside ``path`` to be written, which takes its place when all went well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".partial")
    yield aside
    os.replace(aside, path)


def write_text(path: Path, text: str) -> None:
    """Write a text file that appears whole or not at all."""
    with write_aside(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write JSON with sorted sections kept in the given order; see :func:`write_text`."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a comma-separated table; floats keep all their digits."""
    lines = [",".join(header)]
    lines += [
        ",".join(repr(value) if isinstance(value, float) else str(value) for value in row)
        for row in rows
    ]
    write_text(path, "\n".join(lines) + "\n")


def file_sha256(path: Path) -> str:
    """Hash of a whole file, as ``sha256sum`` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a table written by :func:`write_csv`."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
