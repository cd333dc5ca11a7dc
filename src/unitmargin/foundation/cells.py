"""Cells of tables as text, and the numbers that they become."""

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = frozenset(
    ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-nan", "-NaN", "1.#IND", "1.#QNAN",
     "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
)  # fmt: skip
"""Cells that stand for no value, as pandas reads and writes them."""

FLOATING_SIGNS = ("e", "E", ".")
"""Signs of a number that is written as a floating one."""

CHANGE = np.float32(math.sqrt(0.5))
"""The entry of a one-hot block: a change of category moves two entries by it, which is a length of
1, and rounded to float32 a little less, so a radius of 1 covers it."""

LONGEST = math.sqrt(0.5) * (1.0 - 2.0**-50)
"""What an entry times its unit is at most: three roundings in float64 are covered by 2^-50."""


def is_number(cell: str) -> bool:
    """Whether it is a decimal number; Python would read 1_0 and digits of other scripts, too."""
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell


def is_missing(cell: str) -> bool:
    """Whether a cell stands for no value."""
    return cell in MISSING


def canonical(word: str) -> str:
    """A word or number as a name: a whole number that is written as a floating one without that.

    Example:
        >>> canonical("1.0"), canonical("007"), canonical("1.5"), canonical("red")
        ('1', '007', '1.5', 'red')
    """
    floating = is_number(word) and any(sign in word for sign in FLOATING_SIGNS)
    return str(int(float(word))) if floating and float(word).is_integer() else word


def class_order(names: Iterable[str]) -> list[str]:
    """Different names of classes in their order: numbers by size, NaN last, others as words.

    Example:
        >>> class_order(["10", "9", "nan", "10"]), class_order(["10", "9", "a"])
        (['9', '10', 'nan'], ['10', '9', 'a'])
    """
    different = {*names}
    if not all(map(is_number, different)):
        return sorted(different)
    return sorted(different, key=lambda name: (math.isnan(float(name)), _finite(name), name))


def _finite(name: str) -> float:
    """The number, and 0 for NaN, which has no order."""
    return 0.0 if math.isnan(float(name)) else float(name)


def text_of(cell: Any) -> str:
    """A cell of a data frame as a file would hold it; a number with all its digits.

    Example:
        >>> text_of(0.1), text_of(np.float32(0.5)), text_of(3), text_of(" red "), text_of(None)
        ('0.1', '0.5', '3', 'red', '')
    """
    if cell is None:
        return ""
    if isinstance(cell, np.datetime64 | np.timedelta64):  # whose items may be counts of a unit
        return str(cell)
    held = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(held, float):
        return repr(held)
    if isinstance(held, int) and abs(held) > 1e308:  # Python refuses to write very long ones
        return "inf" if held > 0 else "-inf"
    return str(held).strip()


def scaled_to_unit(
    numbers: NDArray[np.float64],
    shift: float | NDArray[np.float64],
    unit: float | NDArray[np.float64],
) -> NDArray[np.float32]:
    """``(x - shift) / unit``, computed in float64 and rounded; infinite where float32 ends."""
    with np.errstate(all="ignore"):
        return np.asarray((numbers - shift) / unit).astype(np.float32)


@lru_cache
def category_entry(unit: float) -> np.float32:
    """What stands in the entry of a row's category, beside zeros.

    Guarantee: a change of category is no longer than ``1 / unit``, exactly and in float64.
    """
    with np.errstate(all="ignore"):
        entry = np.float32(CHANGE / np.float32(unit))
        while LONGEST / unit < float(entry) < math.inf:
            entry = np.nextafter(entry, np.float32(0.0))
    return entry
