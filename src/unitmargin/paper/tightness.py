"""The LB/MAP tables: how tight certificates are, for the run folders at hand."""

from collections.abc import Sequence
from typing import Any

from unitmargin.certificates.tightness import Search, box_name, tightness
from unitmargin.paper.conditions import NOT_RUN, NOTHING, budget, run_table
from unitmargin.paper.layout import Row, Table
from unitmargin.paper.networks import PAPER_SIDE, paper_input, paper_name, paper_side, row_recipe
from unitmargin.paper.printed import printed_rows
from unitmargin.paper.target import Output, Target
from unitmargin.runs.folder import RunFolder

CAPTIONS = {
    "tab:dist-table": "LB/MAP, certified radius / distance of the closest adversarial point.",
    "tab:further-map": "LB/MAP, certified radius / distance of the closest adversarial point, all "
    "configurations of the paper.",
}
UNITS = (
    " Mean ± standard deviation over the right predictions for which the solver found a point (#N "
    "of so many right ones). Box: points in [0, 1]. The paper computed MAP with Iterative Penalty "
    "without box and with cross-entropy DDN in the box; ours names its solver. Our radii and "
    "distances are in input units, also behind a normalisation; hardware is that of the search. A "
    "run may differ from the paper's in loss, epochs and parametrisation: see the table of runs."
)

FIGURES = ("Paper LB/MAP", "Paper #N", "Our LB/MAP", "Our #N", "Smallest")
CONDITIONS = ("Run", "Budget", "Seed", "Samples", "Solver", "Hardware")
HEADER = ("Model", "Input", "Box", *FIGURES, *CONDITIONS)
NUMERIC = (*FIGURES, "Samples")

PaperRow = tuple[str, str, bool]
"""Model, input and box, as the paper's tables name a row."""

Measured = tuple[PaperRow | None, Row, Row]
"""One search of one run: the paper's row it belongs to, if any; its name, and our cells."""


def tightness_tables(runs: Sequence[RunFolder]) -> list[Table]:
    """``tab:dist-table`` and ``tab:further-map``, other runs, and the conditions of every run.

    Raises:
        RunError: a run folder has no solvers.csv, or a damaged one.
    """
    measured = [measure(run, search) for run in runs for search in run.searches()]
    tables = [paper_table(label, measured) for label in CAPTIONS]
    known = {_key(row) for label in CAPTIONS for row in printed_rows(label)}
    other = [(*name, NOTHING, NOTHING, *cells) for row, name, cells in measured if row not in known]
    if other:
        caption = "LB/MAP of runs that are not rows of the paper's tables." + UNITS
        tables.append(Table("tab:other-runs", caption, HEADER, [other], NUMERIC))
    return [*tables, *run_table(runs)]


def paper_table(label: str, measured: Sequence[Measured]) -> Table:
    """One of the paper's tables with our measurements; as in the paper, first with box."""
    groups: dict[bool, list[Row]] = {True: [], False: []}
    blank = ("",) * (len(HEADER) - 6)
    for printed in printed_rows(label):
        name = (printed["model"], printed["input"], "yes" if printed["box"] else "no")
        paper = (f"{printed['mean']:.2f} ± {printed['spread']:.3f}", str(printed["samples"]))
        ours = [cells for row, _, cells in measured if row == _key(printed)]
        for cells in ours or [(NOT_RUN, *blank)]:
            groups[printed["box"]].append((*name, *paper, *cells))
    return Table(label, CAPTIONS[label] + UNITS, HEADER, list(groups.values()), NUMERIC)


def measure(run: RunFolder, search: Search) -> Measured:
    """The figures of one search of a run."""
    recipe, figures = run.recipe(), tightness(search)
    model, where, side = paper_name(recipe), paper_input(recipe), paper_side(recipe)
    cells = (
        f"{figures.mean:.3f} ± {figures.spread:.3f}" if figures.n else NOTHING,
        f"{figures.n} of {figures.right}",
        f"{figures.smallest:.3f}" if figures.n else NOTHING,
        run.path.name,
        budget(run),
        str(recipe.training.seed),
        str(len(search.index)),
        f"{search.solver} ({search.settings})",
        run.findings().hardware,
    )
    name = (
        model or f"{recipe.model.name} on {recipe.data.name}",
        where if side == PAPER_SIDE else f"{where}, side {side}",
        "no" if search.box is None else f"yes, {box_name(search.box)}",
    )
    row = (model, where, search.box is not None) if model and side == PAPER_SIDE else None
    return row, name, cells


def _key(printed: dict[str, Any]) -> PaperRow:
    return printed["model"], printed["input"], printed["box"]


TIGHTNESS = Target(
    recipes=tuple(
        dict.fromkeys(
            row_recipe(row["model"], row["input"])
            for label in CAPTIONS
            for row in printed_rows(label)
        )
    ),
    searches=True,
    write=lambda runs: Output(tightness_tables(runs)),
)
