"""Reproduce: train what is missing for a table or figure of the paper, and write it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unitmargin.foundation.choice import require_choice
from unitmargin.foundation.files import write_aside, write_text
from unitmargin.paper import TARGETS, Output, Target, to_latex, to_markdown
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import Recipe, read_recipe
from unitmargin.runs.shipped import embedded_recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.train import train_run
from unitmargin.steps.verify import DEFAULT_SOLVERS, choose_solvers, verify_run
from unitmargin.training.processes import leave_processes

ALL = "all"
"""The target that stands for every one."""

ATTACKED_SHARE = 0.05
"""Share of limited test samples that are attacked: the paper's 500 of 10,000."""

RESOLUTION = 150
"""Dots an inch of the PNG files."""


@dataclass(frozen=True)
class Budget:
    """What a reproduction changes in the recipes of the paper's rows.

    Attributes:
        data: file or folder of the data set.
        epochs: instead of the recipe's.
        limit: at most this many training and test samples.
        seeds: so many trainings a row, with the seeds 0, 1, ...
        samples: how many test samples are attacked; by default as many as the recipe says, and
            of limited ones ``ATTACKED_SHARE``.
    """

    data: Path | None = None
    epochs: int | None = None
    limit: int | None = None
    seeds: int = 1
    samples: int | None = None

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {self.seeds}; the paper has 4")

    def recipes(self, name: str) -> list[Recipe]:
        """The recipe of that name, changed, once a seed."""
        recipe = read_recipe(embedded_recipe(name))
        samples = self.samples
        if samples is None and self.limit is not None:
            samples = min(recipe.verify_samples, math.ceil(ATTACKED_SHARE * self.limit))
        return [
            recipe.overridden(self.data, self.limit, self.epochs, seed, samples)
            for seed in range(self.seeds)
        ]


def known_targets(target: str) -> dict[str, Target]:
    """The targets of that name.

    Raises:
        ValueError: an unknown target.
    """
    require_choice("target", target, (*TARGETS, ALL))
    return TARGETS if target == ALL else {target: TARGETS[target]}


def reproduce(
    target: str,
    budget: Budget,
    out: Path,
    solvers: Sequence[str] = DEFAULT_SOLVERS,
    device: str = "cpu",
    minutes: float | None = None,
) -> bool:
    """Train, certify and attack the rows of a target, and write it; whether no promise was broken.

    Rows that are there are not made again. Of many processes the first goes on after the training.

    Args:
        target: a name of ``TARGETS``, or all.
        budget: what is changed in the recipes of the rows.
        out: folder of the rows and of the files.
        solvers: as in :func:`verify_run`.
        device: where to train.
        minutes: instead of epochs: as many steps a row as take about that long.

    Raises:
        ValueError: an unknown target or solver, before anything is trained.
    """
    targets = list(known_targets(target).values())
    choose_solvers(solvers)
    folders = train_rows(targets, budget, out, device, minutes)
    if not leave_processes():
        return True
    sound = evaluate_rows(targets, folders, solvers)
    print(write_outputs(target, folders, out))
    return sound


def train_rows(
    targets: Sequence[Target],
    budget: Budget,
    out: Path,
    device: str = "cpu",
    minutes: float | None = None,
) -> list[Path]:
    """Train every row of the targets that is not trained yet; the folders of all of them."""
    folders = []
    for name in dict.fromkeys(name for target in targets for name in target.recipes):
        for recipe in budget.recipes(name):
            folder = RunFolder(out / f"{recipe.name}-seed{recipe.training.seed}")
            print(train_run(recipe, folder, device, minutes))
            folders.append(folder.path)
    return folders


def evaluate_rows(
    targets: Sequence[Target], folders: Sequence[Path], solvers: Sequence[str] = DEFAULT_SOLVERS
) -> bool:
    """Certify what is not certified yet, attack what a target wants attacked.

    A broken promise stops no other row; the answer is whether there was none.
    """
    sound = True
    attacked = {
        read_recipe(embedded_recipe(name)).name
        for target in targets
        if target.searches
        for name in target.recipes
    }
    for folder in map(RunFolder, folders):
        if not folder.certificates_file.is_file():
            print(freeze_run(folder))
            print(certify_run(folder))
        if folder.recipe().name in attacked and not folder.solvers_file.is_file():
            message, passed = verify_run(folder, solvers)
            print(message)
            sound = passed and sound
    return sound


def write_outputs(target: str, runs: Sequence[Path], out: Path) -> str:
    """Write TARGET.md, TARGET.tex and the figures of one or all targets; rows without a run say so.

    Args:
        target: a name of ``TARGETS``, or all.
        runs: run folders.
        out: folder of the files.

    Raises:
        ValueError: an unknown target.
        RunError: a folder was not certified, or not verified where the target needs it.
    """
    lines = []
    folders = [RunFolder(path) for path in runs]
    for folder in folders:
        if not folder.recipe_file.is_file():
            raise RunError(f"{folder.path} is no run folder; run `unitmargin run RECIPE` first")
    for name, chosen in known_targets(target).items():
        # Under "all", runs that were made for another target alone are left out.
        free = target != ALL or not chosen.searches
        usable = [folder for folder in folders if free or folder.solvers_file.is_file()]
        written = write_output(name, chosen.write(usable), out)
        counted = f"{len(usable)} run{'' if len(usable) == 1 else 's'}"
        lines.append(f"reproduce: {name} from {counted} -> {', '.join(map(str, written))}")
    return "\n".join(lines)


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
