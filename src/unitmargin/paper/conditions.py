"""How a run was made: its budget beside the paper's, its options, its machine."""

from collections.abc import Sequence
from statistics import fmean, stdev

from unitmargin.paper.layout import Table
from unitmargin.paper.networks import model_options, own_row
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import Recipe, read_recipe
from unitmargin.runs.shipped import embedded_recipe

CHANGED = (
    "Changed: what differs from the recipe of the paper's row, besides budget and seed. Hours: of "
    "training, with the evaluation after each epoch, on the hardware named; core-hours: of its "
    "processors."
)

NOT_RUN = "not run"
NOTHING = "–"

TRAINING_SAMPLES = 50_000
"""Of CIFAR-10."""


UNSEEN: dict[str, int | bool] = {
    "evaluate_every": 1, "pieces": 1, "recompute_activations": False
}  # fmt: skip
"""Options that change no result but by the rounding of a sum, each with its default."""

MIXING = "mixing_ugnn"
"""The network whose layers are all on the manifold, whatever its options."""

OF_A_TEACHER = ("teacher_width", "teacher_share", "teacher_temperature")


def budget(runs: Sequence[RunFolder], unit: str = "") -> str:
    """Epochs of a row's runs, and of how many in the paper where the two differ; ``unit`` follows
    them.

    Runs of the paper's epochs on all images say only their epochs. The paper's are those of the
    row's recipe; runs that are no row have none beside them.
    """
    recipe, lengths = runs[0].recipe(), sorted({trained_epochs(run) for run in runs})
    limit, paper = recipe.data.limit, paper_epochs(recipe)
    words = " to ".join(dict.fromkeys(significant(end, 3) for end in (lengths[0], lengths[-1])))
    if paper is not None and lengths != [paper]:
        words = f"about {words}" if words == f"{paper}" else f"{words} of {paper}"
    words += unit
    if limit is not None and limit < TRAINING_SAMPLES and recipe.data.name == "cifar10":
        words += f", {limit} images"
    return words


def trained_epochs(run: RunFolder) -> float:
    """Epochs that the recipe of a run asks for, also where it counts steps; of other data than the
    paper's those that were trained, as they are counted in its history."""
    recipe = run.recipe()
    training, limit = recipe.training, recipe.data.limit
    if training.steps and recipe.data.name != "cifar10" and run.history_file.is_file():
        return float(len(run.history()))
    steps = training.epoch_steps(min(limit or TRAINING_SAMPLES, TRAINING_SAMPLES))
    return training.steps / steps if training.steps else float(training.epochs)


def paper_epochs(recipe: Recipe) -> int | None:
    """Epochs of the paper's row that a recipe belongs to; None if it belongs to none."""
    row = paper_recipe(recipe)
    return None if row is None else row.training.epochs


def paper_recipe(recipe: Recipe) -> Recipe | None:
    """The recipe of the paper's row that a recipe belongs to; None if it belongs to none."""
    name = own_row(recipe)
    if name is None:
        return None
    try:
        row = embedded_recipe(name)
    except FileNotFoundError:
        return None
    return read_recipe(row)


def changes(run: RunFolder) -> str:
    """What a run does otherwise than the paper's row, besides its budget and its seed."""
    recipe = run.recipe()
    row = paper_recipe(recipe)
    if row is None:
        return NOTHING
    ours, paper = (
        recipe.training.model_dump() | {"normalization": recipe.model.normalization}
        | {"dtype": recipe.dtype, "profile": recipe.profile} | model_options(recipe)
        for recipe in (recipe, row)
    )  # fmt: skip
    unused = {"epochs", "steps", "seed", *UNSEEN, *unused_options(recipe)}
    changed = [name for name in ours if name not in unused and ours[name] != paper.get(name)]
    return ", ".join(f"{name} {_shown(ours[name])}" for name in changed) or "nothing"


def unused_options(recipe: Recipe) -> set[str]:
    """Options that a training does not read, since another one is chosen."""
    training, options = recipe.training, model_options(recipe)
    margin = training.loss == "multi_margin"
    unused = {"offset", "temperature"} if margin else {"margin"}
    manifold = "manifold" in options.values() or recipe.model.name == MIXING
    unused |= set() if manifold else {"manifold_rate", "interval"}
    unused |= set() if training.optimizer == "sgd" else {"momentum"}
    unused |= set() if training.teacher_epochs else set(OF_A_TEACHER)
    return unused | (set() if training.crop else {"padding"})


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def hours(runs: Sequence[RunFolder]) -> str:
    """Hours of training and evaluation by epoch, the mean over runs that have a history."""
    logged = [run.history() for run in runs if run.history_file.is_file()]
    if not logged:
        return NOTHING
    return significant(fmean(sum(row.seconds for row in rows) for rows in logged) / 3600)


def core_hours(runs: Sequence[RunFolder]) -> str:
    """Hours of processor time of the same, the mean over runs whose history tells them."""
    logged = [run.history() for run in runs if run.history_file.is_file()]
    known = [[r.core_seconds for r in rows if r.core_seconds is not None] for rows in logged]
    told = [sum(row) for row, rows in zip(known, logged, strict=True) if len(row) == len(rows)]
    return significant(fmean(told) / 3600) if told else NOTHING


def significant(value: float, digits: int = 2) -> str:
    """A number by its first digits, and all before the point.

    >>> significant(0.01234), significant(99.6), significant(1234.0, 3)
    ('0.012', '100', '1234')
    """
    short = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in short else short


def over_seeds(values: Sequence[float], digits: int = 3) -> str:
    """Mean and standard deviation over seeds; of one value itself, of none a dash.

    >>> over_seeds([0.96, 0.97]), over_seeds([0.5])
    ('0.965 ± 0.0071', '0.500')
    """
    if not values:
        return NOTHING
    mean = f"{fmean(values):.{digits}f}"
    return f"{mean} ± {stdev(values):.{digits + 1}f}" if len(values) > 1 else mean


def run_table(runs: Sequence[RunFolder]) -> list[Table]:
    """The table of runs: how each was trained; none without runs."""
    if not runs:
        return []
    conditions = [run_conditions(run) for run in runs]
    caption = "The runs of the tables above: how each was trained. " + CHANGED
    rows = [tuple(row.values()) for row in conditions]
    numeric = ("Batch", "Hours", "Core-hours")
    return [Table("tab:runs", caption, tuple(conditions[0]), [rows], numeric)]


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
        "Activation": str(options.get("activation", NOTHING)),
        "Convolution": str(options.get("conv", NOTHING)),
        "Dense": str(options.get("linear", NOTHING)),
        "Head": str(options.get("head", NOTHING)),
        "Loss": loss,
        "Batch": str(training.batch_size),
        "Changed": changes(run),
        "Hours": hours([run]),
        "Core-hours": core_hours([run]),
        "Hardware": origin.get("hardware", NOTHING),
        "Torch": origin.get("torch", NOTHING),
        "Commit": origin.get("commit") or NOTHING,
    }


def trained_with(run: RunFolder) -> dict[str, str]:
    """Hardware, torch and commit of a run's training; nothing of a run without weights."""
    return run.origin().provenance if run.weights_file.is_file() else {}
