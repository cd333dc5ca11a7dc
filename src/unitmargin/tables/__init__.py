"""Family: the paper's tables, measured again on run folders, with the printed numbers beside ours.

A new target is one file with a function from run folders to tables, one entry here, and the printed
numbers in ``paper.toml``.
"""

from collections.abc import Callable, Sequence

from unitmargin.runs import RunFolder
from unitmargin.tables.layout import Table as Table
from unitmargin.tables.layout import to_latex as to_latex
from unitmargin.tables.layout import to_markdown as to_markdown
from unitmargin.tables.tightness import tightness_tables

TABLES: dict[str, Callable[[Sequence[RunFolder]], list[Table]]] = {
    "tightness": tightness_tables,
}
