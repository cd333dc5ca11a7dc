"""The file history.csv: one line an epoch."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, FiniteFloat, PositiveInt

from unitmargin.foundation.tables import read_table, write_table
from unitmargin.training.train import EpochRecord

EVALUATED = ("clean_accuracy", "certified_accuracy", "orthogonality_error")

TIMED = ("rate", "waiting", "memory", "core_seconds")

Measured = Annotated[FiniteFloat | None, BeforeValidator(lambda cell: cell or None)]
"""A number, or an empty cell for an epoch that was not evaluated or timed."""

KINDS: dict[str, Any] = (
    {field.name: FiniteFloat for field in fields(EpochRecord)}
    | dict.fromkeys((*EVALUATED, *TIMED), Measured)
    | {"epoch": PositiveInt}
)


def write_history(file: Path, history: Sequence[EpochRecord]) -> None:
    """Write history.csv."""
    rows = [asdict(record) for record in history]
    write_table(file, {name: [row[name] for row in rows] for name in KINDS})


def read_history(file: Path) -> tuple[EpochRecord, ...]:
    """Read history.csv.

    Raises:
        ValueError: a damaged file, or epochs that do not count from 1.
    """
    columns = read_table(file, KINDS)
    if columns["epoch"] != list(range(1, max(1, len(columns["epoch"])) + 1)):
        raise ValueError(f"epoch must count from 1, got {columns['epoch']}")
    return tuple(EpochRecord(*row) for row in zip(*columns.values(), strict=True))
