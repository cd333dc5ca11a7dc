"""The numbers that the paper prints, from ``paper.toml``."""

import tomllib
from importlib.resources import files
from typing import Any

from unitmargin.foundation.choice import choose


def printed_rows(label: str) -> list[dict[str, Any]]:
    """Rows of one of the paper's tables, in its order.

    Args:
        label: of the table in the paper's source.

    Raises:
        ValueError: the file has no such table.

    Example:
        >>> printed_rows("tab:dist-table")[0]["model"]
        'ResNet9'
    """
    content = tomllib.loads(files(__package__).joinpath("paper.toml").read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = choose("label", label, content)["rows"]
    return rows
