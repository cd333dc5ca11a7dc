"""The LB/MAP tables: how tight certificates are, for the run folders at hand."""

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.figure import Figure

from unitmargin.certificates.spaces import NORMALISED
from unitmargin.certificates.tightness import Search, box_name, tightness
from unitmargin.paper.closest import SPACES
from unitmargin.paper.conditions import (
    NOT_RUN,
    NOTHING,
    budget,
    over_seeds,
    run_table,
)
from unitmargin.paper.distances import distribution_figure, scatter_figure
from unitmargin.paper.false_positives import false_positive_figure, false_positive_table
from unitmargin.paper.groups import same_trainings, seeds
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
    "of so many right ones), of all seeds together; and the mean over seeds of their own means, "
    "with its spread. Box: points in [0, 1]. Space: a norm row of the paper is measured behind the "
    "normalisation (normalised), where the network is 1-Lipschitz; in pixels its certificate is "
    "divided by the largest stretch of a channel, so the ratio is another one. Raw rows know one "
    "space. The paper computed MAP with Iterative Penalty without box and with cross-entropy DDN "
    "in the box; ours names its solver. Hardware is that of the search. A run may differ from the "
    "paper's in loss, epochs and parametrisation: see the table of runs."
)

FIGURES = ("Paper LB/MAP", "Paper #N", "Our LB/MAP", "Our #N", "Smallest", "Over seeds")
CONDITIONS = ("Run", "Budget", "Seed", "Samples", "Solver", "Hardware")
HEADER = ("Model", "Input", "Box", "Space", *FIGURES, *CONDITIONS)
NUMERIC = (*FIGURES, "Samples")
OURS = len(HEADER) - HEADER.index("Our LB/MAP")

SearchedRow = tuple[str, str, bool]
"""Model, input and box, as the paper's tables name a row."""

Measured = tuple[SearchedRow | None, Row, Row]
"""One search of runs: the paper's row it belongs to, if any; its name and space, and our cells."""


def tightness_tables(runs: Sequence[RunFolder]) -> list[Table]:
    """``tab:dist-table`` and ``tab:further-map``, other runs, and the conditions of every run.

    Raises:
        RunError: a run folder has no solvers.csv, or a damaged one.
    """
    measured = [
        measure(searched, searches)
        for group in same_trainings(runs)
        for searched, searches in same_searches(group)
    ]
    tables = [paper_table(label, measured) for label in CAPTIONS]
    known = {_key(row) for label in CAPTIONS for row in printed_rows(label)}
    other = [(*name, NOTHING, NOTHING, *cells) for row, name, cells in measured if row not in known]
    if other:
        caption = "LB/MAP of runs that are not rows of the paper's tables." + UNITS
        tables.append(Table("tab:other-runs", caption, HEADER, [other], NUMERIC))
    bars = false_positive_table(runs)
    return [*tables, *([bars] if any(bars.groups) else []), *run_table(runs)]


def paper_table(label: str, measured: Sequence[Measured]) -> Table:
    """One of the paper's tables with our measurements; as in the paper, first with box."""
    groups: dict[bool, list[Row]] = {True: [], False: []}
    for printed in printed_rows(label):
        name = (printed["model"], printed["input"], "yes" if printed["box"] else "no")
        paper = (f"{printed['mean']:.2f} ± {printed['spread']:.3f}", str(printed["samples"]))
        ours = [(space, cells) for row, (*_, space), cells in measured if row == _key(printed)]
        for space, cells in ours or [("", (NOT_RUN, *("",) * (OURS - 1)))]:
            groups[printed["box"]].append((*name, space, *paper, *cells))
    return Table(label, CAPTIONS[label] + UNITS, HEADER, list(groups.values()), NUMERIC)


def same_searches(runs: Sequence[RunFolder]) -> list[tuple[list[RunFolder], list[Search]]]:
    """The searches of several runs, those by the same solver in the same box and space together;
    behind the normalisation first, where the paper measures."""
    groups: dict[tuple[Any, ...], list[tuple[RunFolder, Search]]] = {}
    for run in runs:
        for search in run.searches():
            key = search.space, search.box, search.solver, search.settings
            groups.setdefault(key, []).append((run, search))
    ordered = sorted(groups, key=lambda key: key[0] != NORMALISED)
    return [([run for run, _ in groups[key]], [one for _, one in groups[key]]) for key in ordered]


def measure(runs: Sequence[RunFolder], searches: Sequence[Search]) -> Measured:
    """The figures of one search of runs that differ in their seed alone."""
    search, recipe = searches[0], runs[0].recipe()
    model, where, side = paper_name(recipe), paper_input(recipe), paper_side(recipe)
    cells = (
        *ratio_cells(searches),
        ", ".join(run.path.name for run in runs),
        budget(runs),
        seeds(runs),
        str(sum(len(one.index) for one in searches)),
        f"{search.solver} ({search.settings})",
        "; ".join(dict.fromkeys(run.findings().hardware for run in runs)),
    )
    name = (
        model or f"{recipe.model.name} on {recipe.data.name}",
        where if side == PAPER_SIDE else f"{where}, side {side}",
        "no" if search.box is None else f"yes, {box_name(search.box)}",
        SPACES[search.space] if recipe.data.name == "cifar10" else search.space,
    )
    row = (model, where, search.box is not None) if model and side == PAPER_SIDE else None
    return row, name, cells


def ratio_cells(searches: Sequence[Search]) -> Row:
    """LB/MAP over the samples of all seeds, their number, the smallest, and means over seeds."""
    each = [tightness(search) for search in searches]
    ratio = torch.cat([(one.radius / one.distance)[one.found] for one in searches])
    right = sum(figures.right for figures in each)
    if not len(ratio):
        return NOTHING, f"0 of {right}", NOTHING, NOTHING
    means = [figures.mean for figures in each if figures.n]
    return (
        f"{float(ratio.mean()):.3f} ± {float(ratio.std(correction=0)):.3f}",
        f"{len(ratio)} of {right}",
        f"{float(ratio.min()):.3f}",
        over_seeds(means) if len(means) > 1 else NOTHING,
    )


def tightness_figures(runs: Sequence[RunFolder]) -> dict[str, tuple[Figure, str]]:
    """``fig:scatter-IP-norm``, ``fig:dist-multi`` and ``fig:false-postive``."""
    return {
        "scatter-map": scatter_figure(runs),
        "dist-multi": distribution_figure(runs),
        "false-positives": false_positive_figure(runs),
    }


def _key(printed: dict[str, Any]) -> SearchedRow:
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
    write=lambda runs: Output(tightness_tables(runs), tightness_figures(runs)),
)
