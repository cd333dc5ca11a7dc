"""The frontier: certified accuracy against core-minutes, and how tight certificates are.

    python benchmarks/frontier.py RUN... [--png FILE] [--json FILE] [--epsilon E]

Every run is a finished folder, or the JSON of an earlier call, whose runs are drawn too. Its
minutes are the processor time that history.csv tells. Seeds of one training are averaged: runs
whose recipes say the same but for the seed and the place of the data. Recipes of one model and loss
are one line, and networks that widen have their own. Filled points had a teacher.
"""

import argparse
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from unitmargin.certificates.accuracy import HEADLINE_EPSILON
from unitmargin.foundation.files import read_json, write_json
from unitmargin.paper.canvas import panels
from unitmargin.paper.conditions import UNSEEN, trained_epochs, unused_options
from unitmargin.paper.groups import STEPS_APART
from unitmargin.reporting.drawing import CLASS_COLOURS, INK, TEXT_SIZE, label, percent_axis
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.provenance import provenance
from unitmargin.runs.recipe import Recipe


def core_minutes(folder: RunFolder) -> float:
    """Minutes of processor time of a training.

    Raises:
        ValueError: a history that does not tell them.
    """
    told = [row.core_seconds for row in folder.history()]
    if None in told:
        raise ValueError(
            f"history.csv must have core_seconds, got none in {folder.path}; train the run again"
        )
    return sum(one for one in told if one is not None) / 60.0


def family(recipe: Recipe) -> str:
    """The line of the figure that a recipe belongs to.

    Example:
        >>> from unitmargin.runs.recipe import read_recipe
        >>> family(read_recipe("recipes/cifar10-wide.toml"))
        'mixing_ugnn widened, offset_cross_entropy'
    """
    plan = recipe.model.options.get("plan", ())
    widens = any(step.startswith("widen") for step in plan)
    return f"{recipe.model.name}{' widened' * widens}, {recipe.training.loss}"


def training(recipe: Recipe) -> dict[str, Any]:
    """What a recipe says of a training, but for seed, length and place of the data."""
    said = recipe.placeless().model_dump(mode="json", exclude_defaults=True)
    said.pop("verify_samples", None)
    apart = {"seed", "epochs", "steps", *UNSEEN, *unused_options(recipe)}
    options = {key: value for key, value in said.pop("training", {}).items() if key not in apart}
    return said | {"training": options}


def point(folder: RunFolder, epsilon: float) -> dict[str, Any]:
    """What a run cost and reached."""
    recipe, certificates = folder.recipe(), folder.certificates()
    searches = folder.findings().solvers
    free = [row for row in searches if row["box"] == "none"]
    return {
        "recipe": recipe.name,
        "family": family(recipe),
        "seed": recipe.training.seed,
        "training": training(recipe),
        "epochs": trained_epochs(folder),
        "steps": recipe.training.steps,
        "taught": recipe.training.teacher_epochs > 0,
        "minutes": core_minutes(folder),
        "clean": float(certificates.right.double().mean()),
        "certified": certificates.certified_accuracy(epsilon),
        "tightness": free[0]["mean"] if free else None,
        "commit": folder.origin().provenance.get("commit"),
    }


def points(path: Path, epsilon: float) -> list[dict[str, Any]]:
    """The run of a folder, or those of an earlier call.

    Raises:
        ValueError: an earlier call at another epsilon.
    """
    if path.suffix != ".json":
        return [point(RunFolder(path), epsilon)]
    earlier: dict[str, Any] = read_json(path)
    if earlier["epsilon"] != epsilon:
        raise ValueError(
            f"epsilon must be that of {path}, {earlier['epsilon']}, got {epsilon}; pass the "
            "folders of its runs"
        )
    return list(earlier["runs"])


def same_training(run: dict[str, Any], shorter: dict[str, Any]) -> bool:
    """Whether two runs differ in their seed alone. Of runs that an earlier call wrote without their
    training it is the recipe's name that says so."""
    if any(run.get(key) != shorter.get(key) for key in ("family", "recipe", "training")):
        return False
    length, known = run.get("epochs", 0.0), shorter.get("epochs", 0.0)
    counted = run.get("steps") or shorter.get("steps")
    return bool(length - known <= (STEPS_APART * known if counted else 0.0))


def groups(runs: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The seeds of each training.

    Raises:
        ValueError: one seed of a training twice.
    """
    found: list[list[dict[str, Any]]] = []
    for run in sorted(runs, key=lambda one: one.get("epochs", 0.0)):
        known = next((group for group in found if same_training(run, group[0])), None)
        if known is None:
            found.append([run])
        else:
            known.append(run)
    for group in found:
        seed, times = Counter(one["seed"] for one in group).most_common(1)[0]
        if times > 1:
            raise ValueError(
                f"runs of one training must differ in their seed, got seed {seed} of "
                f"{group[0]['recipe']} {times} times; pass each run once"
            )
    return found


def averaged(runs: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Means over the seeds of each training, by family and minutes."""
    families: dict[str, list[dict[str, Any]]] = {one["family"]: [] for one in runs}
    for group in groups(runs):
        first = group[0]
        mean = {"recipe": first["recipe"], "seeds": len(group), "taught": first["taught"]}
        for key in ("epochs", "minutes", "clean", "certified", "tightness"):
            told = [one[key] for one in group if one.get(key) is not None]
            mean[key] = statistics.mean(told) if told else None
        families[first["family"]].append(mean)
    return {name: sorted(rows, key=lambda row: row["minutes"]) for name, rows in families.items()}


def draw(families: dict[str, list[dict[str, Any]]], epsilon: float, path: Path) -> None:
    figure, (accuracy, tightness) = panels(2, width=360.0, height=330.0)
    for colour, (name, rows) in zip(CLASS_COLOURS, families.items(), strict=False):
        draw_line(accuracy, rows, "certified", colour, name)
        draw_line(tightness, rows, "tightness", colour)
    for axes in (accuracy, tightness):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(lambda minutes, _: f"{minutes:g}")
        axes.xaxis.set_minor_locator(NullLocator())
    percent_axis(accuracy)
    label(accuracy, "core-minutes of training", f"right and certified beyond {epsilon:.3g}")
    label(tightness, "core-minutes of training", "certificate / distance found")
    figure.legend(
        loc="outside lower center", ncols=2, frameon=False, labelcolor=INK, fontsize=TEXT_SIZE - 2
    )
    figure.savefig(path, dpi=110)


def draw_line(
    axes: Axes, rows: list[dict[str, Any]], key: str, colour: str, name: str | None = None
) -> None:
    """One family; rows without that figure are left out."""
    known = [row for row in rows if row[key] is not None]
    minutes, values = [row["minutes"] for row in known], [row[key] for row in known]
    axes.plot(minutes, values, "o-", color=colour, label=name, lw=2, markersize=7, mfc="white")
    taught = [place for place, row in enumerate(known) if row["taught"]]
    axes.plot(minutes, values, "o", color=colour, markersize=7, markevery=taught)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--png", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--epsilon", type=float, default=HEADLINE_EPSILON)
    arguments = parser.parse_args()
    try:
        known = [one for run in arguments.runs for one in points(run, arguments.epsilon)]
        families = averaged(known)
    except (OSError, RunError, ValueError) as error:
        parser.error(str(error))
    for name, rows in families.items():
        for row in rows:
            tight = "-" if row["tightness"] is None else f"{row['tightness']:.4f}"
            epochs = "-" if row["epochs"] is None else f"{row['epochs']:.4g}"
            print(
                f"{name:<42} {row['recipe']:<24} {row['seeds']} seeds  {epochs:>6} epochs  "
                f"{row['minutes']:7.2f} min  clean {row['clean']:.4f}  "
                f"certified {row['certified']:.4f}  tightness {tight}"
            )
    if arguments.json:
        write_json(arguments.json, {"runs": known, "epsilon": arguments.epsilon} | provenance())
    if arguments.png:
        draw(families, arguments.epsilon, arguments.png)


if __name__ == "__main__":
    main()
