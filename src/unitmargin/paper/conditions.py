"""How a run was made: its budget beside the paper's, its options, its machine."""

import math
from collections.abc import Sequence

from unitmargin.paper.layout import Table
from unitmargin.paper.networks import model_options, paper_input, paper_name, paper_side, row_recipe
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import Recipe, read_recipe
from unitmargin.runs.shipped import embedded_recipe

NOT_RUN = "not run"
NOTHING = "–"

TRAINING_SAMPLES = 50_000
"""Of CIFAR-10."""


def budget(run: RunFolder) -> str:
    """Epochs of a run, and of how many in the paper where the two differ.

    A run of the paper's epochs on all images says only its epochs. The paper's are those of the
    row's recipe; a run that is no row has none beside it.
    """
    recipe = run.recipe()
    training, limit = recipe.training, recipe.data.limit
    samples = min(limit or TRAINING_SAMPLES, TRAINING_SAMPLES)
    steps = math.ceil(samples / training.batch_size)
    epochs = training.steps / steps if training.steps else training.epochs
    words, paper = f"{epochs:.3g}", paper_epochs(recipe)
    if paper is not None and epochs != paper:
        words += f" of {paper}"
    if limit is not None and limit < TRAINING_SAMPLES and recipe.data.name == "cifar10":
        words += f", {limit} images"
    return words


def paper_epochs(recipe: Recipe) -> int | None:
    """Epochs of the paper's row that a recipe belongs to; None if it belongs to none."""
    name = paper_name(recipe)
    if name is None:
        return None
    try:
        row = embedded_recipe(row_recipe(name, paper_input(recipe), paper_side(recipe)))
    except FileNotFoundError:
        return None
    return read_recipe(row).training.epochs


def run_table(runs: Sequence[RunFolder]) -> list[Table]:
    """The table of runs: how each was trained; none without runs."""
    if not runs:
        return []
    conditions = [run_conditions(run) for run in runs]
    caption = "The runs of the tables above: how each was trained."
    rows = [tuple(row.values()) for row in conditions]
    return [Table("tab:runs", caption, tuple(conditions[0]), [rows], ("Batch",))]


def run_conditions(run: RunFolder) -> dict[str, str]:
    """How a run was trained, by column of the table of runs."""
    recipe = run.recipe()
    origin = trained_with(run)
    options, training = model_options(recipe), recipe.training
    loss = (
        f"multi_margin (margin {training.margin:.4g})"
        if training.loss == "multi_margin"
        else f"{training.loss} (offset {training.offset:g}, temperature {training.temperature:g})"
    )
    limit = "" if recipe.data.limit is None else f", {recipe.data.limit} samples"
    return {
        "Run": run.path.name,
        "Data": recipe.data.name + limit,
        "Model": recipe.model.name,
        "Normalisation": recipe.model.normalization,
        "Activation": str(options["activation"]),
        "Convolution": str(options.get("conv", NOTHING)),
        "Dense": str(options.get("linear", NOTHING)),
        "Head": str(options.get("head", NOTHING)),
        "Loss": loss,
        "Batch": str(training.batch_size),
        "Hardware": origin.get("hardware", NOTHING),
        "Torch": origin.get("torch", NOTHING),
        "Commit": origin.get("commit") or NOTHING,
    }


def trained_with(run: RunFolder) -> dict[str, str]:
    """Hardware, torch and commit of a run's training; nothing of a run without weights."""
    return run.origin().provenance if run.weights_file.is_file() else {}
