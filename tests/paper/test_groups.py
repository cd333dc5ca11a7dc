"""Rows: which runs are seeds of one training, and what tells others apart."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from certified import certified, write_made_weights

from unitmargin.paper.groups import row_names, same_trainings, seeds
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import ModelOptions, Recipe
from unitmargin.training.options import TrainingOptions

ROW = "paper/ugnn-maxmin-updu-raw"


def rows(path: Path, trainings: list[dict[str, Any]]) -> list[list[str]]:
    """The names of runs of these trainings, in groups."""
    runs = [
        certified(path / str(number), ROW, [0.2], training=training)
        for number, training in enumerate(trainings)
    ]
    return [[run.path.name for run in group] for group in same_trainings(runs)]


@pytest.mark.parametrize(
    ("trainings", "groups"),
    [
        ([{"seed": 0}, {"seed": 1}, {"seed": 0, "loss": "offset_cross_entropy"}], ["01", "2"]),
        # By minutes each counts its own steps; epochs are asked for.
        ([{"steps": 3430}, {"steps": 3500, "seed": 1}, {"steps": 3700, "seed": 2}], ["01", "2"]),
        ([{"epochs": 100}, {"epochs": 104, "seed": 1}], ["0", "1"]),
        ([{"epochs": 100}, {"steps": 4950, "seed": 1}], ["01"]),
        # A seed stands in a row once, whatever its machine or commit.
        ([{"seed": 0}, {"seed": 0}, {"seed": 1}], ["02", "1"]),
        # Nothing reads how often weights move where none is on the manifold.
        ([{"interval": 1}, {"interval": 4, "seed": 1}], ["01"]),
        ([{"batch_size": 1024}, {"batch_size": 512, "seed": 1}], ["0", "1"]),
    ],
)
def test_rows_are_seeds_of_one_training(
    trainings: list[dict[str, Any]], groups: list[str], tmp_path: Path
) -> None:
    assert rows(tmp_path, trainings) == [list(group) for group in groups]


@pytest.mark.parametrize("order", list(permutations([3300, 3440, 3590])))
def test_groups_are_those_of_any_order(order: tuple[int, ...], tmp_path: Path) -> None:
    trainings = [{"steps": steps, "seed": steps} for steps in order]
    found = rows(tmp_path, trainings)
    lengths = {frozenset(order[int(name)] for name in group) for group in found}
    assert lengths == {frozenset((3300, 3440)), frozenset((3590,))}
    assert found == sorted(map(sorted, found))


@pytest.mark.parametrize("order", list(permutations("abd")))
def test_epochs_and_steps_are_grouped_in_any_order(order: tuple[str, ...], tmp_path: Path) -> None:
    lengths = {"a": {"epochs": 20}, "b": {"steps": 980}, "d": {"epochs": 21}}
    trainings = {name: length | {"seed": ord(name)} for name, length in lengths.items()}
    found = rows(tmp_path, [trainings[name] for name in order])
    assert {frozenset(order[int(one)] for one in group) for group in found} == {
        frozenset("ab"), frozenset("d")
    }  # fmt: skip


def test_a_default_that_is_written_out_makes_no_row(tmp_path: Path) -> None:
    runs = []
    for seed, options in enumerate(({}, {"kernel_size": 3}, {"kernel_size": 5})):
        folder = RunFolder(tmp_path / str(seed))
        model = ModelOptions(name="ugnn", options=options)
        folder.start(Recipe(name="r", model=model, training=TrainingOptions(seed=seed)))
        runs.append(folder)
    assert same_trainings(runs) == [runs[:2], runs[2:]]


def test_rates_of_the_manifold_tell_trainings_of_mixing_networks_apart(tmp_path: Path) -> None:
    def run(seed: int, rate: float) -> RunFolder:
        folder = RunFolder(tmp_path / f"{seed}-{rate}")
        model = ModelOptions(name="mixing_ugnn", options={"head": "bounded"})
        training = TrainingOptions(seed=seed, manifold_rate=rate)
        folder.start(Recipe(name="r", model=model, training=training))
        return folder

    one, again, other = run(0, 0.02), run(1, 0.02), run(2, 0.5)
    assert same_trainings([one, again, other]) == [[one, again], [other]]


def test_seeds_of_a_row_are_of_the_same_data(tmp_path: Path) -> None:
    def run(seed: int, content: float, place: str) -> RunFolder:
        folder = certified(
            tmp_path / f"{seed}-{content}-{place}", ROW, [0.2], seed, data={"path": place}
        )
        write_made_weights(folder, {}, content)
        return folder

    one, moved, other = run(0, 0.0, "a"), run(1, 0.0, "b"), run(2, 1.0, "a")
    assert same_trainings([one, moved, other]) == [[one, moved], [other]]
    for folder in (one, moved, other):
        folder.weights_file.unlink()
    assert same_trainings([one, moved, other]) == [[one, other], [moved]]


def test_names_are_told_apart_by_budgets_and_then_by_folders(tmp_path: Path) -> None:
    def group(name: str, **training: Any) -> list[RunFolder]:
        return [certified(tmp_path / name, ROW, [0.2], training=training)]

    short, long, again = group("a"), group("b", epochs=9), group("c", margin=0.25)
    assert row_names(["X"], [short]) == ["X"]
    assert row_names(["X", "Y", "X"], [short, short, long]) == [
        "X, 3 of 300 epochs",
        "Y",
        "X, 9 of 300 epochs",
    ]
    assert row_names(["X", "X"], [short, again]) == [
        "X, 3 of 300 epochs, a",
        "X, 3 of 300 epochs, c",
    ]
    assert seeds([*short, *long]) == "0, 0"


def test_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    groups = [[certified(tmp_path / place, ROW, [0.2])] for place in ("old/a", "new/a", "b")]
    names = row_names(["X", "X", "Y"], groups)
    assert names == ["X, 3 of 300 epochs, old/a", "X, 3 of 300 epochs, new/a", "Y"]
