"""A table of text cells, written as Markdown and as LaTeX with booktabs."""

from collections.abc import Sequence
from dataclasses import dataclass

Row = tuple[str, ...]

LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "∇": r"$\nabla$",
    "ε": r"$\epsilon$",
}
"""Characters that LaTeX reads otherwise, or that its fonts may lack."""


@dataclass(frozen=True)
class Table:
    """Text cells under a header.

    Attributes:
        label: of the table in the paper's source, such as ``tab:dist-table``.
        caption: what it shows, on what and how.
        header: column names.
        groups: rows, separated by a rule between groups; empty groups are dropped.
        numeric: names of the columns that are aligned to the right.
    """

    label: str
    caption: str
    header: Row
    groups: Sequence[Sequence[Row]]
    numeric: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        widths = {len(row) for group in self.groups for row in group} | {len(self.header)}
        if len(widths) > 1:
            raise ValueError(
                f"rows of {self.label} must have {len(self.header)} cells, got {sorted(widths)}; "
                "give every row one cell a column"
            )


def to_markdown(table: Table) -> str:
    """The table as Markdown; the rule between groups is a row of empty cells."""
    rule = ["---:" if name in table.numeric else "---" for name in table.header]
    lines = [_markdown_row(table.header), _markdown_row(rule)]
    for number, group in enumerate(filter(None, table.groups)):
        lines += [_markdown_row([""] * len(table.header))] if number else []
        lines += [_markdown_row(row) for row in group]
    body = "\n".join(lines)
    return f"## {table.label}\n\n{table.caption}\n\n{body}\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def to_latex(table: Table) -> str:
    """The table as a LaTeX ``table*`` of the text's width; needs booktabs and graphicx."""
    columns = "".join("r" if name in table.numeric else "l" for name in table.header)
    head = " & ".join(rf"\textbf{{{escape(name)}}}" for name in table.header)
    groups = [
        "\n".join(" & ".join(map(escape, row)) + r" \\" for row in group)
        for group in filter(None, table.groups)
    ]
    return "\n".join(
        [
            r"\begin{table*}[ht]",
            r"\centering\footnotesize",
            r"\resizebox{\textwidth}{!}{%",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            rf"{head} \\",
            r"\midrule",
            "\n\\midrule\n".join(groups),
            r"\bottomrule",
            r"\end{tabular}}",
            rf"\caption{{{escape(table.caption)}}}",
            rf"\label{{{table.label}}}",
            r"\end{table*}",
            "",
        ]
    )


def escape(text: str) -> str:
    r"""Text that LaTeX prints as it stands.

    >>> print(escape("5 % of sphere_tracing ± 1"))
    5 \% of sphere\_tracing $\pm$ 1
    """
    return "".join(LATEX.get(letter, letter) for letter in text)
