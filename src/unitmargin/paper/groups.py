"""Runs that are one row of a table: seeds of one training; and what tells two rows apart."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, compress, islice
from typing import Any

from unitmargin.paper.conditions import UNSEEN, budget, trained_epochs, unused_options
from unitmargin.paper.networks import model_options
from unitmargin.reporting.places import shortest_places
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import DataOptions, Recipe
from unitmargin.training.identity import DataIdentity
from unitmargin.training.options import TrainingOptions

Training = tuple[Recipe, DataIdentity | DataOptions, dict[str, Any]]
"""A recipe without what may differ in a row, its data (by content where that is known), and the
options of its model."""

STEPS_APART = 0.05
"""Trainings by minutes count their own steps: lengths up to this share apart are one."""


def same_trainings(runs: Sequence[RunFolder]) -> list[list[RunFolder]]:
    """The runs in groups that differ in their seed alone, and in names, places and machines.

    A seed stands in a group once: a second run of it begins another one. Groups are those of the
    same runs in any order but for that, and stand, as the runs in them, in the order given.
    """
    groups: list[tuple[Training, list[int]]] = []
    lengths = [(trained_epochs(run), _counts_steps(run)) for run in runs]
    for index in sorted(range(len(runs)), key=lengths.__getitem__):
        training, run = _training(runs[index]), runs[index]
        for known, group in groups:
            shortest, others = runs[group[0]], [runs[one] for one in group]
            alike = known == training and _one_length(run, shortest)
            if alike and _seed(run) not in _seeds(others):
                group.append(index)
                break
        else:
            groups.append((training, [index]))
    return [[runs[one] for one in group] for group in sorted(sorted(group) for _, group in groups)]


def seeds(runs: Sequence[RunFolder]) -> str:
    """The seeds of a group of runs."""
    return ", ".join(map(str, _seeds(runs)))


def row_names(names: Sequence[str], groups: Sequence[Sequence[RunFolder]]) -> list[str]:
    """A name for each group: where several have the same one, with their budgets, and where these
    are the same as well, with as much of their folders as tells them apart."""
    told = _told_apart(names, [budget(group, " epochs") for group in groups])
    times = Counter(told)
    alike = [times[name] > 1 for name in told]
    places = [run.path.resolve() for run in chain(*compress(groups, alike))]
    words = iter(shortest_places(places))
    folders = [
        ", ".join(islice(words, len(group))) if shared else ""
        for shared, group in zip(alike, groups, strict=True)
    ]
    return _told_apart(told, folders)


def _told_apart(names: Sequence[str], words: Sequence[str]) -> list[str]:
    """The names, those that occur twice with their words."""
    times = Counter(names)
    pairs = zip(names, words, strict=True)
    return [f"{name}, {more}" if times[name] > 1 else name for name, more in pairs]


def _training(run: RunFolder) -> Training:
    """What two trainings of one row have in common: all that is read, but seed and length."""
    recipe = run.recipe()
    data = run.origin().identity.data if run.weights_file.is_file() else recipe.data
    defaults = TrainingOptions().model_dump()
    unread = {name: defaults[name] for name in unused_options(recipe)}
    any_length = {"seed": 0, "epochs": 1, "steps": 0, **UNSEEN}
    alike = recipe.placeless().changed(training=unread | any_length)
    alike = alike.changed(name="any", verify_samples=1, model={"options": {}})
    return alike, data, model_options(recipe)  # defaults may be written out or not


def _one_length(run: RunFolder, other: RunFolder) -> bool:
    """Whether a run is as long as another one, which is no longer."""
    counted = _counts_steps(run) or _counts_steps(other)
    length, known = trained_epochs(run), trained_epochs(other)
    return abs(length - known) <= (STEPS_APART * known if counted else 0.0)


def _counts_steps(run: RunFolder) -> bool:
    return run.recipe().training.steps > 0


def _seed(run: RunFolder) -> int:
    return run.recipe().training.seed


def _seeds(runs: Sequence[RunFolder]) -> list[int]:
    return [_seed(run) for run in runs]
