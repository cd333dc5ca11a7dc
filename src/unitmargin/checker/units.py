"""What radii are measured in, by what a model file states of the columns of its training table."""

from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

INPUTS = "the units of the inputs"

SCALES = {
    "none": "the units of the columns",
    "features": "standard deviations of the training rows",
    "units": "unit lengths of the columns",
}


def radius_units(encoding: Any) -> str:
    """The words that certificates.json must have; of no table those of the inputs.

    What is no encoding raises one of ``UNFIT``.
    """
    return f"l2 distance in {INPUTS if encoding is None else _of_table(encoding)}"


def _of_table(encoding: Any) -> str:
    words = SCALES[encoding.get("scale", "none")]
    columns = [(column["name"], column.get("unit", 1.0), column.get("categories"))
               for column in encoding["columns"]]  # fmt: skip
    if words == SCALES["units"]:
        named = {name: unit for name, unit, _ in columns if unit != 1.0}
        listed = ", ".join(f"{name} = {unit:.15g}" for name, unit in named.items())
        rest = ", all others 1" if 0 < len(named) < len(columns) else ""
        words = f"{words} ({listed or 'all 1'}{rest})"
    lengths = {name: 1.0 / unit for name, unit, categories in columns if categories}
    if not lengths:
        return words
    each = ", ".join(f"{_raised(length):g} ({name})" for name, length in lengths.items())
    alike = set(lengths.values()) == {1.0}
    return f"{words}; a change of category has the length {'1' if alike else each}"


def _raised(length: float) -> float:
    """Rounded up to six digits, so that a radius of the number that is said covers the change."""
    return float(Context(prec=6, rounding=ROUND_CEILING).plus(Decimal(repr(length))))
