"""What a reproduction is: recipes to train, and what is written from their run folders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.figure import Figure

from unitmargin.foundation.files import write_aside, write_text
from unitmargin.paper.layout import Table, to_latex, to_markdown
from unitmargin.runs.folder import RunFolder

RESOLUTION = 150
"""Dots an inch of the PNG files."""


@dataclass(frozen=True)
class Output:
    """Tables, and figures by name, each with the caption that says what it shows."""

    tables: list[Table]
    figures: dict[str, tuple[Figure, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """One table or figure of the paper.

    Attributes:
        recipes: names of the embedded recipes of its rows; none where nothing is trained.
        searches: whether its runs must be verified by solvers.
        write: from run folders, of any recipes, to tables and figures.
        takes: whether a run stands in them.
    """

    recipes: tuple[str, ...]
    searches: bool
    write: Callable[[Sequence[RunFolder]], Output]
    takes: Callable[[RunFolder], bool] = lambda run: True


def write_output(name: str, output: Output, out: Path) -> list[Path]:
    """The files of one target: Markdown, LaTeX, and each figure as PNG and PDF."""
    markdown, latex = out / f"{name}.md", out / f"{name}.tex"
    pictures = []
    sections = [to_markdown(table) for table in output.tables]
    for label, (figure, caption) in output.figures.items():
        for suffix in ("png", "pdf"):
            file = out / f"{label}.{suffix}"
            with write_aside(file) as aside:
                figure.savefig(aside, format=suffix, dpi=RESOLUTION)
            pictures.append(file)
        sections.append(f"## {label}\n\n![{label}]({label}.png)\n\n{caption}\n")
    write_text(markdown, f"# {name}\n\n" + "\n".join(sections))
    needs = "% Needs \\usepackage{booktabs,graphicx}.\n"
    write_text(latex, needs + "\n".join(to_latex(table) for table in output.tables))
    return [markdown, latex, *pictures]
