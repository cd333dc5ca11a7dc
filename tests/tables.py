"""Tables as plain text, for tests that compare or break them."""

import csv
from pathlib import Path


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a comma-separated table by column."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    """Write the rows back, whatever is in them."""
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    path.write_text("".join(",".join(line) + "\n" for line in lines), encoding="utf-8")
