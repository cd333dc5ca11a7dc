"""Predict: what a network says of new inputs, and how far it holds, as lines of text."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

from unitmargin.certificates.rows import DIGITS
from unitmargin.data import InputBatch
from unitmargin.foundation.failures import one_line
from unitmargin.foundation.numbers import require_whole
from unitmargin.guard import Claims, Model
from unitmargin.runs.certifier import CERTIFY_BATCH, certify_files, table_units

HEADER = ("source", "predicted", "radius", "runner-up", "margin")

SPOOLED = 1 << 24
"""Bytes of lines that wait in memory; more of them wait in a file."""

NONE = "-"
"""Stands for no class."""


def predict(
    certifier: Model, data: Path, as_json: bool = False, batch_size: int = CERTIFY_BATCH
) -> Iterator[str]:
    """Lines that say, of every input, the predicted class and the radius in which it holds.

    No line comes before the last input was judged, so of inputs that are refused nothing is said.
    Numbers of the table are rounded down to six digits. With ``as_json`` a line is an object with
    the names of the columns of certificates.csv, and has all digits. Of a network that was trained
    on a table a last line, or in each object ``units``, says what radii are measured in.

    Raises:
        ValueError: inputs that do not fit the network, or fewer than one a batch.

    Cost: memory of the table, of JSON that of one batch and ``SPOOLED`` bytes.
    """
    require_whole("batch_size", batch_size, 1, "leave it out")
    answers = certify_files(certifier, data, batch_size)
    rows = (row for batch, claims in answers for row in _rows(certifier.classes, batch, claims))
    units = table_units(certifier)
    if as_json:
        stated = {} if units is None else {"units": units}
        return _judged(json.dumps(row | stated) for row in rows)
    lines = _table([HEADER, *map(_cells, rows)])
    return lines if units is None else chain(lines, [f"radii in {units}"])


def _judged(lines: Iterator[str]) -> Iterator[str]:
    """The lines when all are there; many of them wait in a file."""
    with SpooledTemporaryFile(SPOOLED, "w+", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.seek(0)
        yield from (line.rstrip("\n") for line in file)


def _rows(classes: Sequence[str], batch: InputBatch, claims: Claims) -> Iterator[dict[str, Any]]:
    columns = (column.tolist() for column in claims)
    for source, label, second, margin, radius in zip(batch.sources, *columns, strict=True):
        yield {
            "source": source,
            "predicted": label,
            "predicted_name": classes[label] if label >= 0 else "",
            "runner_up": second,
            "runner_up_name": classes[second] if second >= 0 else "",
            "margin": margin,
            "radius": radius,
        }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    names = (one_line(row[name]) for name in ("source", "predicted_name", "runner_up_name"))
    source, predicted, second = (name or NONE for name in names)
    radius, margin = (str(DIGITS.create_decimal(row[name])) for name in ("radius", "margin"))
    return source, predicted, radius, second, margin


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Rows as lines of columns, the numbers at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if place in (2, 4) else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
