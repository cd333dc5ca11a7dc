"""Compare: certified runs side by side on one page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from unitmargin.certificates.accuracy import HEADLINE_EPSILON
from unitmargin.certificates.epsilons import Epsilons, epsilon_name
from unitmargin.foundation.files import require_path, write_text
from unitmargin.reporting import comparison, curves, origin, runs_table
from unitmargin.reporting.comparison import Compared, certified_share
from unitmargin.reporting.pages import render
from unitmargin.reporting.titles import comparison_titles
from unitmargin.runs.folder import RunFolder

PAGE = Path("runs/compare.html")
"""Where the page is written by default."""

PAGES = (".html", ".htm")
"""How a page is called: no other file is written over."""


def compare_runs(folders: Sequence[RunFolder], out: Path = PAGE) -> str:
    """Write a page of certified runs; it needs no network.

    Raises:
        RunError: a run that is not certified yet, or a damaged file; the message names the command.
        ValueError: no run, one run twice, runs that cannot be compared, or a page of another name.
    """
    require_path("out", out)
    if out.suffix.lower() not in PAGES:
        raise ValueError(f"out must end in .html, got {out}; name a page")
    beside = RunFolder(out.parent)
    if beside.recipe_file.is_file() and out in (beside.report_html, beside.explore_html):
        raise ValueError(f"out must be no page of a run itself, got {out}; name another page")
    runs = comparison.read_compared(folders)
    epsilons = comparison.common_epsilons(runs)
    write_text(out, render("compare.html.jinja", _content(runs, epsilons)))
    name = epsilon_name(epsilons.headline)
    best = max(runs, key=lambda run: certified_share(run, epsilons.headline))
    share = certified_share(best, epsilons.headline)
    words = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    return f"compare: {words}, best certified@{name} {share:.4f} of {best.name} -> {out}"


def _content(runs: Sequence[Compared], epsilons: Epsilons) -> dict[str, Any]:
    against = comparison.differences(runs, epsilons)
    trained_at = epsilon_name(HEADLINE_EPSILON) if runs[0].pixels else f"{HEADLINE_EPSILON:.3g}"
    figures = {
        "accuracy": curves.accuracy_curves(runs, epsilons),
        "clean": curves.training_curves(runs, "clean_accuracy", "clean accuracy"),
        "certified": curves.training_curves(
            runs, "certified_accuracy", f"certified accuracy at {trained_at}"
        ),
    }
    return {
        "runs": runs,
        "styles": [curves.style(number) for number in range(len(runs))],
        "titles": comparison_titles(runs, epsilons, against),
        "figures": {name: Markup(figure) for name, figure in figures.items() if figure},
        "sections": [
            ("Results", runs_table.result_rows(runs, epsilons)),
            ("Cost", runs_table.cost_rows(runs)),
            ("What differs in the recipes", runs_table.recipe_rows(runs)),
            ("Origin", runs_table.origin_rows(runs)),
        ],
        "epsilons": epsilons,
        "against": against,
        "untrained": [run.name for run in runs if not run.history],
        "trained_at": trained_at,
        "written": origin.written_on(),
    }
