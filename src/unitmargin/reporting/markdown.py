"""Markdown: somebody's names as plain text in it."""

import re

from unitmargin.foundation.failures import one_line
from unitmargin.frozen import FrozenNetwork
from unitmargin.runs.certifier import radius_space, table_units

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#!|~&$:@])")
"""What begins markup, a link or a cell within a line. A backslash in front makes a sign of it."""


def plain_text(text: str) -> str:
    r"""A text as itself within a line of Markdown: in a sentence, a heading or a cell of a table.

    Example:
        >>> print(plain_text("<b>cat|dog\n---"))
        \<b\>cat\|dog ---
    """
    return SPECIAL.sub(r"\\\1", one_line(text))


def units_text(frozen: FrozenNetwork) -> str:
    """What radii of a network are measured in, where names of columns are plain text."""
    units = table_units(frozen)
    return radius_space(frozen) if units is None else plain_text(units)
