"""Comma-separated tables whose floats keep all their digits."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from unitmargin.foundation.files import write_text


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a comma-separated table; floats keep all their digits."""
    lines = [",".join(header)]
    lines += [
        ",".join(repr(value) if isinstance(value, float) else str(value) for value in row)
        for row in rows
    ]
    write_text(path, "\n".join(lines) + "\n")


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a table written by :func:`write_csv`."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
