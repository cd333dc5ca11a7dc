"""Budgets: what a table says of a run that had less than the paper's."""

from dataclasses import replace
from pathlib import Path

import pytest
from certified import certified

from unitmargin.models import MODELS
from unitmargin.paper.conditions import (
    NOTHING,
    budget,
    changes,
    core_hours,
    hours,
    over_seeds,
    run_conditions,
    trained_with,
)
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.history import write_history
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.training.options import TrainingOptions
from unitmargin.training.train import EpochRecord

ROW = "paper/ugnn-maxmin-updu-raw"


@pytest.mark.parametrize(
    ("model", "training", "limit", "words"),
    [
        ("ugnn", {"epochs": 300}, None, "300"),
        ("ugnn", {"epochs": 30}, None, "30 of 300"),
        ("ugnn", {"epochs": 30}, 60_000, "30 of 300"),
        ("ugnn", {"epochs": 1}, 512, "1 of 300, 512 images"),
        ("ugnn", {"epochs": 9, "steps": 49, "batch_size": 1024}, None, "1 of 300"),
        ("ugnn", {"epochs": 9, "steps": 61, "batch_size": 1024}, None, "1.24 of 300"),
        ("ugnn", {"epochs": 1500}, None, "1500 of 300"),
        ("ugnn", {"steps": 14_690, "batch_size": 1024}, None, "about 300"),
        ("dense_ugnn", {"epochs": 7}, None, "7"),
    ],
)
def test_budgets(
    tmp_path: Path, model: str, training: dict[str, int], limit: int | None, words: str
) -> None:
    folder = RunFolder(tmp_path)
    data = DataOptions(name="cifar10", limit=limit)
    folder.start(
        Recipe(
            name="r",
            data=data,
            model=ModelOptions(name=model),
            training=TrainingOptions(**training),
        )
    )
    assert budget([folder]) == words


def test_epochs_of_other_data_are_those_of_the_history(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    training = TrainingOptions(steps=30)
    data, model = DataOptions(name="digits"), ModelOptions(name="dense_ugnn")
    run.start(Recipe(name="r", data=data, model=model, training=training))
    record = EpochRecord(1, 0.1, 0.5, 0.4, 0.0, 0.01, 1.0)
    write_history(run.history_file, [replace(record, epoch=number) for number in (1, 2, 3)])
    assert budget([run]) == "3"


def test_a_run_without_weights_has_no_origin(tmp_path: Path) -> None:
    assert trained_with(RunFolder(tmp_path)) == {}


def test_changes_name_what_the_paper_does_otherwise(tmp_path: Path) -> None:
    run = certified(tmp_path / "paper", ROW, [0.2])
    assert changes(run) == "nothing"
    training = {"epochs": 9, "evaluate_every": 3, "pieces": 2, "manifold_rate": 0.03}
    options = run.recipe().model.options | {"linear": "manifold", "head": "simplex"}
    changed = {"training": training, "model": {"options": options}}
    ours = certified(tmp_path / "ours", ROW, [0.2], 5, **changed)
    assert changes(ours) == "manifold_rate 0.03, linear manifold, head simplex"
    rounded = RunFolder(tmp_path / "rounded")
    rounded.start(run.recipe().changed(dtype="float64", profile="float32"))
    assert changes(rounded) == "dtype float64, profile float32"
    other = RunFolder(tmp_path / "other")
    other.start(Recipe(name="r", model=ModelOptions(name="dense_ugnn")))
    assert changes(other) == NOTHING


@pytest.mark.parametrize("model", MODELS)
def test_runs_of_every_network_have_conditions(tmp_path: Path, model: str) -> None:
    run = RunFolder(tmp_path)
    run.start(Recipe(name="r", model=ModelOptions(name=model)))
    conditions = run_conditions(run)
    assert conditions["Model"] == model
    assert conditions["Activation"] in ("abs", "maxmin", NOTHING)


def test_lengths_of_a_row_are_a_range(tmp_path: Path) -> None:
    lengths = (4 * 49, 4 * 49 + 5)
    runs = [
        certified(tmp_path / str(steps), ROW, [0.2], training={"steps": steps}) for steps in lengths
    ]
    assert budget(runs) == "4 to 4.1 of 300"


def test_hours_are_those_of_the_history(tmp_path: Path) -> None:
    runs = [certified(tmp_path / name, ROW, [0.2]) for name in ("a", "b", "c")]
    assert hours(runs) == NOTHING
    for run, seconds in zip(runs, (1800.0, 5400.0), strict=False):
        record = EpochRecord(1, 0.1, None, None, None, 0.1, seconds)
        write_history(run.history_file, [record, replace(record, epoch=2)])
    assert hours(runs) == "2"
    assert core_hours(runs) == NOTHING
    record = EpochRecord(1, 0.1, None, None, None, 0.1, 1.0, core_seconds=900.0)
    write_history(runs[2].history_file, [record, replace(record, epoch=2)])
    assert core_hours(runs) == "0.5"


def test_no_value_is_a_dash() -> None:
    assert over_seeds([]) == NOTHING
