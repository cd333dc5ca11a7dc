"""Reproduce: train what is missing for a table or figure of the paper, and write it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from unitmargin.certificates.spaces import NORMALISED
from unitmargin.certificates.tightness import Search, describe_settings
from unitmargin.foundation.choice import require_choice, require_either
from unitmargin.foundation.numbers import require_whole
from unitmargin.paper import TARGETS, Target, own_row, write_output
from unitmargin.runs.folder import TRAIN, RunError, RunFolder
from unitmargin.runs.reading import RunReading
from unitmargin.runs.recipe import Recipe, read_recipe
from unitmargin.runs.searching import DEFAULT_SOLVERS, choose_solvers, has_normalised_space
from unitmargin.runs.shipped import embedded_recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.train import train_run
from unitmargin.steps.verify import verify_run
from unitmargin.training.processes import joined_processes, leave_processes

ALL = "all"
"""The target that stands for every one."""

WHOLE = ("sphere_tracing",)
"""Solvers that search every test sample, as the paper's did, whose counts reach 7,933."""

ATTACKED = 500
"""Test samples of the other solvers, a choice of ours: theirs take up to thousands of passes."""


@dataclass(frozen=True)
class Budget:
    """What a reproduction changes in the recipes of the paper's rows.

    Attributes:
        data: file or folder of the data set.
        epochs: instead of the recipe's.
        minutes: instead of epochs: as many steps a row as take about that long.
        limit: at most this many training and test samples.
        seeds: so many trainings a row, with the seeds 0, 1, ...
        samples: how many test samples each solver searches; by default those in ``WHOLE`` search
            all, the others ``ATTACKED``.
        device: where to train.

    Raises:
        ValueError: no seed, no sample, or minutes beside epochs.
    """

    data: Path | None = None
    epochs: int | None = None
    minutes: float | None = None
    limit: int | None = None
    seeds: int = 1
    samples: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {self.seeds}; the paper has 4")
        require_whole("samples", self.attacked, 1, "leave it out for all and 500")
        require_either(minutes=self.minutes, epochs=self.epochs)

    @property
    def attacked(self) -> int:
        """How many test samples each solver searches that does not search all."""
        return ATTACKED if self.samples is None else self.samples

    @property
    def whole(self) -> tuple[str, ...]:
        """The solvers that search all of them."""
        return WHOLE if self.samples is None else ()

    def recipes(self, name: str) -> list[Recipe]:
        """The recipe of that name, changed, once a seed."""
        recipe = read_recipe(embedded_recipe(name))
        return [
            recipe.overridden(self.data, self.limit, self.epochs, seed)
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
) -> bool:
    """Train, certify and attack the rows of a target, and write it; whether no promise was broken.

    Rows that are there are not made again. Of many processes the first goes on after the training.

    Args:
        target: a name of ``TARGETS``, or all.
        budget: what is changed in the recipes of the rows.
        out: folder of the rows and of the files.
        solvers: as in :func:`verify_run`.

    Raises:
        ValueError: an unknown target or solver, before anything is trained; anything in ``budget``
            for a target without rows.
    """
    targets = list(known_targets(target).values())
    choose_solvers(solvers)
    if not any(each.recipes for each in targets):
        _require_unchanged(budget, [field.name for field in fields(budget)], f"with {target}")
    folders = train_rows(targets, budget, out)
    if not leave_processes():
        return True
    sound = evaluate_rows(targets, folders, budget, solvers)
    print(write_outputs(target, folders, out))
    return sound


def take_over(
    target: str,
    runs: Sequence[Path],
    budget: Budget,
    out: Path,
    solvers: Sequence[str] = DEFAULT_SOLVERS,
) -> bool:
    """Write a target from run folders that are there; whether no promise was broken.

    Nothing is trained. What is trained and not certified is certified, and attacked where the
    target wants it and no solver searched it yet; of ``budget``, ``data`` and ``samples`` are used.
    A run of any length, optimiser and seed stands in the paper's row that it belongs to by data,
    network, activation, head and input.

    Raises:
        ValueError: an unknown target or solver, a target that no run stands in, or in ``budget``
            what only a training has a use for.
        RunError: a folder that is no run, or without trained weights.
    """
    targets = list(known_targets(target).values())
    choose_solvers(solvers)
    if not any(each.recipes for each in targets):
        rule = f"runs must be left out with {target}, which no run stands in"
        raise ValueError(f"{rule}, got {', '.join(map(str, runs))}; leave them out")
    _require_unchanged(budget, ("epochs", "minutes", "limit", "seeds", "device"), "with runs")
    require_runs(runs)
    for folder in map(RunFolder, runs):
        folder.require(folder.weights_file, TRAIN)
    taken = [path for path in runs if any(each.takes(RunFolder(path)) for each in targets)]
    sound = evaluate_rows(targets, taken, budget, solvers)
    print(write_outputs(target, taken, out))
    for path in runs:
        if path not in taken:
            print(f"reproduce: {path} is no row of {target}, and is left out")
    return sound


def _require_unchanged(budget: Budget, names: Sequence[str], where: str) -> None:
    """Raise for options that nothing has a use for."""
    for name in names:
        if (value := getattr(budget, name)) != getattr(Budget(), name):
            raise ValueError(
                f"{name} must be left out {where}, where nothing is trained, got {value}; leave "
                "out one of them"
            )


def train_rows(
    targets: Sequence[Target],
    budget: Budget,
    out: Path,
) -> list[Path]:
    """Train every row of the targets that is not trained yet; the folders of all of them."""
    folders = []
    for name in dict.fromkeys(name for target in targets for name in target.recipes):
        for recipe in budget.recipes(name):
            folder = RunFolder(out / f"{recipe.name}-seed{recipe.training.seed}")
            message = train_run(recipe, folder, budget.device, budget.minutes)
            joined_processes().say(message)
            folders.append(folder.path)
    return folders


def evaluate_rows(
    targets: Sequence[Target],
    folders: Sequence[Path],
    budget: Budget,
    solvers: Sequence[str] = DEFAULT_SOLVERS,
) -> bool:
    """Certify what is not certified yet, attack what a target wants attacked.

    One target wants all its runs attacked or none; of several, those that are a row of one that
    does. A broken promise stops no other row; the answer is whether there was none.
    """
    sound = True
    attacked = {name for target in targets if target.searches for name in target.recipes}
    every = len(targets) == 1 and targets[0].searches
    for folder in map(RunFolder, folders):
        # Of each step the file that it writes last: the others may be of one that was interrupted.
        if not folder.certificate_facts_file.is_file():
            print(freeze_run(folder))
            print(certify_run(folder, data=budget.data))
        if not (every or own_row(folder.recipe()) in attacked):
            continue
        if folder.checks_file.is_file():
            passed = recall(folder, budget, solvers)
        else:
            message, passed = attack(folder, budget, solvers)
            print(message)
        sound = passed and sound
    return sound


def recall(folder: RunFolder, budget: Budget, solvers: Sequence[str]) -> bool:
    """Whether a run that was attacked before kept its promises; tells of those that it broke, and
    of what was asked for and not searched: solvers, samples, the space behind its normalisation."""
    findings = folder.findings()
    if not findings.passed:
        broken = ", ".join(row.name for row in findings.checks if row.failed)
        print(f"reproduce: {folder.path} broke promises when it was verified: {broken}")
    searches = folder.searches()
    had = dict.fromkeys((search.solver, search.settings) for search in searches)
    asked = {
        str(one): (one.name, describe_settings(one.name, **dict(one.options)))
        for one in choose_solvers(solvers)
    }
    lacking = [word for word, search in asked.items() if search not in had]
    if has_normalised_space(folder) and all(search.space != NORMALISED for search in searches):
        lacking.append("the space behind its normalisation")
    lacking += _unsearched(folder, budget, searches)
    if lacking:
        kept = ", ".join(f"{name} ({settings})" for name, settings in had)
        print(
            f"reproduce: {folder.path} keeps its searches by {kept}, without "
            f"{', '.join(lacking)}; remove {folder.checks_file} to search it by all"
        )
    return findings.passed


def _unsearched(folder: RunFolder, budget: Budget, searches: Sequence[Search]) -> list[str]:
    """How many samples of those that :func:`attack` would give it a solver has not searched."""
    everything, left = len(folder.certificates()), {}
    for search in searches:
        wanted = everything if search.solver in budget.whole else budget.attacked
        left[search.solver] = min(wanted, everything) - len(search.index)
    return [f"{n} sample{'s' * (n > 1)} by {solver}" for solver, n in left.items() if n > 0]


def attack(folder: RunFolder, budget: Budget, solvers: Sequence[str]) -> tuple[str, bool]:
    """Verify a run as the paper's tables need it: in both spaces where there are two, on so many
    samples."""
    return verify_run(
        folder,
        solvers,
        budget.attacked,
        data=budget.data,
        normalised=has_normalised_space(folder),
        whole=budget.whole,
    )


def require_runs(runs: Sequence[Path]) -> None:
    """Raise unless every path is a run folder."""
    for folder in map(RunFolder, runs):
        if not folder.recipe_file.is_file():
            raise RunError(f"{folder.path} is no run folder; run `unitmargin run RECIPE` first")


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
    require_runs(runs)
    folders = [RunReading(path) for path in {path.resolve(): path for path in runs}.values()]
    for name, chosen in known_targets(target).items():
        # Under "all", runs that were made for another target alone are left out.
        free = target != ALL or not chosen.searches
        taken = [folder for folder in folders if chosen.takes(folder)]
        usable = [folder for folder in taken if free or folder.checks_file.is_file()]
        written = write_output(name, chosen.write(usable), out)
        counted = f" from {len(usable)} run{'' if len(usable) == 1 else 's'}"
        if left := len(taken) - len(usable):
            counted += f", without {left} that no solver searched,"
        counted = counted if chosen.recipes else ""
        lines.append(f"reproduce: {name}{counted} -> {', '.join(map(str, written))}")
    return "\n".join(lines)
