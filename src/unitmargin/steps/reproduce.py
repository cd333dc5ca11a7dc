"""Reproduce: a table of the paper from the run folders at hand, as Markdown and LaTeX."""

from collections.abc import Sequence
from pathlib import Path

from unitmargin.runs import RunFolder, write_text
from unitmargin.tables import TABLES, to_latex, to_markdown

RUNS = Path("runs")


def reproduce(target: str, runs: Sequence[Path], out: Path) -> str:
    """Write ``out/TARGET.md`` and ``out/TARGET.tex``; rows without a run say so.

    Args:
        target: a name of ``TABLES``.
        runs: verified run folders; none: every verified folder in ``runs/``.
        out: folder of the two files.

    Raises:
        ValueError: an unknown target.
        RunError: a folder was not verified.
    """
    if target not in TABLES:
        raise ValueError(f"target must be one of {', '.join(TABLES)}, got {target!r}; choose one")
    folders = [RunFolder(path) for path in runs] or verified_folders(RUNS)
    tables = TABLES[target](folders)
    markdown, latex = out / f"{target}.md", out / f"{target}.tex"
    title = f"# {target}\n\n"
    write_text(markdown, title + "\n".join(to_markdown(table) for table in tables))
    needs = "% Needs \\usepackage{booktabs,graphicx}.\n"
    write_text(latex, needs + "\n".join(to_latex(table) for table in tables))
    counted = f"{len(folders)} run{'' if len(folders) == 1 else 's'}"
    return f"reproduce: {target} from {counted} -> {markdown}, {latex}"


def verified_folders(parent: Path) -> list[RunFolder]:
    """Run folders in a folder that hold the solvers' answers, by name."""
    found = [RunFolder(path) for path in sorted(parent.glob("*"))]
    return [folder for folder in found if folder.solvers_file.is_file()]
