"""The LB/MAP tables: how tight certificates are, for the run folders at hand."""

import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unitmargin.models import MODELS
from unitmargin.models.ugnn import PAPER_DEPTH, PAPER_HIDDEN
from unitmargin.recipe import Recipe
from unitmargin.runs import RunFolder
from unitmargin.solver_rows import read_searches
from unitmargin.tables.layout import Row, Table
from unitmargin.tables.paper import printed_rows
from unitmargin.tightness import Search, box_name, tightness

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

HEADER = (
    "Model",
    "Input",
    "Box",
    "Paper LB/MAP",
    "Paper #N",
    "Our LB/MAP",
    "Our #N",
    "Smallest",
    "Run",
    "Epochs",
    "Seed",
    "Samples",
    "Solver",
    "Hardware",
)
NUMERIC = ("Paper LB/MAP", "Paper #N", "Our LB/MAP", "Our #N", "Smallest", "Epochs", "Samples")

RUN_HEADER = (
    "Run",
    "Data",
    "Model",
    "Normalisation",
    "Activation",
    "Convolution",
    "Dense",
    "Head",
    "Loss",
    "Batch",
    "Torch",
    "Commit",
)

NOT_RUN = "not run"
NOTHING = "–"

ACTIVATIONS = {"abs": "Abs", "maxmin": "MaxMin", "oplu": "OPLU"}
HEADS = {"bounded": "updB", "lbfgs": "updU", "simplex": "updU"}
"""The simplex head is the closed form of the projection that the paper's updU iterates."""

INPUTS = {"none": "raw", "centre": "raw", "channel": "norm"}
"""Subtracting the mean moves no distance, so centred pixels count as raw."""

PaperRow = tuple[str, str, bool]
"""Model, input and box, as the paper's tables name a row."""


@dataclass(frozen=True)
class Measurement:
    """One search of one run: the paper's row it belongs to, if any, and our cells beside it."""

    row: PaperRow | None
    name: Row
    cells: Row


def tightness_tables(runs: Sequence[RunFolder]) -> list[Table]:
    """``tab:dist-table`` and ``tab:further-map``, other runs, and the conditions of every run.

    Raises:
        RunError: a run folder has no solvers.csv, or a damaged one.
    """
    measured = [measure(run, search) for run in runs for search in _searches(run)]
    tables = [paper_table(label, measured) for label in CAPTIONS]
    known = {_key(row) for label in CAPTIONS for row in printed_rows(label)}
    other = tuple(
        (*entry.name, NOTHING, NOTHING, *entry.cells)
        for entry in measured
        if entry.row not in known
    )
    if other:
        caption = "LB/MAP of runs that are not rows of the paper's tables." + UNITS
        tables.append(Table("tab:other-runs", caption, HEADER, (other,), NUMERIC))
    if runs:
        rows = tuple(run_conditions(run) for run in runs)
        caption = "The runs of the tables above: how each was trained."
        tables.append(Table("tab:runs", caption, RUN_HEADER, (rows,), ("Batch",)))
    return tables


def paper_table(label: str, measured: Sequence[Measurement]) -> Table:
    """One of the paper's tables with our measurements; as in the paper, first with box."""
    groups: dict[bool, list[Row]] = {True: [], False: []}
    blank = ("",) * (len(HEADER) - 6)
    for printed in printed_rows(label):
        name = (printed["model"], printed["input"], "yes" if printed["box"] else "no")
        paper = (f"{printed['mean']:.2f} ± {printed['spread']:.3f}", str(printed["samples"]))
        ours = [entry.cells for entry in measured if entry.row == _key(printed)]
        for cells in ours or [(NOT_RUN, *blank)]:
            groups[printed["box"]].append((*name, *paper, *cells))
    rows = tuple(tuple(group) for group in groups.values())
    return Table(label, CAPTIONS[label] + UNITS, HEADER, rows, NUMERIC)


def measure(run: RunFolder, search: Search) -> Measurement:
    """The figures of one search of a run."""
    recipe, figures = run.recipe(), tightness(search)
    model, where = paper_name(recipe), INPUTS.get(recipe.model.normalization)
    mean = f"{figures.mean:.3f} ± {figures.spread:.3f}" if figures.n else NOTHING
    cells = (
        mean,
        f"{figures.n} of {figures.right}",
        f"{figures.smallest:.3f}" if figures.n else NOTHING,
        run.path.name,
        str(recipe.training.epochs),
        str(recipe.training.seed),
        str(len(search.index)),
        f"{search.solver} ({search.settings})",
        str(_checks(run).get("hardware", NOTHING)),
    )
    name = (
        model or f"{recipe.model.name} on {recipe.data.name}",
        where or recipe.model.normalization,
        "no" if search.box is None else f"yes, {box_name(search.box)}",
    )
    if model is None or where is None:
        return Measurement(None, name, cells)
    return Measurement((model, where, search.box is not None), name, cells)


def paper_name(recipe: Recipe) -> str | None:
    """The paper's name of a network, such as UGNN+MaxMin+updU; None for what it has no row for.

    Example:
        >>> from unitmargin.recipe import embedded_recipe, read_recipe
        >>> paper_name(read_recipe(embedded_recipe("cifar10-ugnn")))
        'UGNN+MaxMin+updU'
    """
    if (recipe.data.name, recipe.model.name) != ("cifar10", "ugnn"):
        return None
    options = model_options(recipe)
    activation, head = ACTIVATIONS.get(options["activation"]), HEADS.get(options["head"])
    depth, hidden = options["depth"] or PAPER_DEPTH, options["hidden"] or PAPER_HIDDEN
    paper = (depth, tuple(hidden), options["kernel_size"]) == (PAPER_DEPTH, PAPER_HIDDEN, 3)
    return f"UGNN+{activation}+{head}" if activation and head and paper else None


def model_options(recipe: Recipe) -> dict[str, Any]:
    """The options of a recipe's model, with the model's defaults for those it leaves out."""
    parameters = inspect.signature(MODELS[recipe.model.name]).parameters.values()
    return {option.name: option.default for option in parameters} | recipe.model.options


def run_conditions(run: RunFolder) -> Row:
    """How a run was trained, for the table of runs."""
    recipe, checks = run.recipe(), _checks(run)
    options, training = model_options(recipe), recipe.training
    loss = (
        f"multi_margin (margin {training.margin:g})"
        if training.loss == "multi_margin"
        else f"{training.loss} (offset {training.offset:g}, temperature {training.temperature:g})"
    )
    limit = "" if recipe.data.limit is None else f", {recipe.data.limit} samples"
    return (
        run.path.name,
        recipe.data.name + limit,
        recipe.model.name,
        recipe.model.normalization,
        str(options["activation"]),
        str(options.get("conv", NOTHING)),
        str(options["linear"]),
        str(options["head"]),
        loss,
        str(training.batch_size),
        str(checks.get("torch", NOTHING)),
        str(checks.get("commit") or NOTHING),
    )


def _searches(run: RunFolder) -> list[Search]:
    return read_searches(run.require(run.solvers_file, f"verify {run.path}"))


def _checks(run: RunFolder) -> dict[str, Any]:
    file = run.require(run.checks_file, f"verify {run.path}")
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def _key(printed: dict[str, Any]) -> PaperRow:
    return printed["model"], printed["input"], printed["box"]
