"""Markdown: somebody's names as plain text in it."""

import re

from unitmargin.foundation.failures import one_line

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#!|~&$:@])")
"""What begins markup, a link or a cell within a line. A backslash in front makes a sign of it."""


def plain_text(text: str) -> str:
    r"""A text as itself within a line of Markdown: in a sentence, a heading or a cell of a table.

    Example:
        >>> print(plain_text("<b>cat|dog\n---"))
        \<b\>cat\|dog ---
    """
    return SPECIAL.sub(r"\\\1", one_line(text))
