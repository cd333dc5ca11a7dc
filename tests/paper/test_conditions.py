"""Budgets: what a table says of a run that had less than the paper's."""

from pathlib import Path

import pytest

from unitmargin.paper.conditions import budget, trained_with
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.training.options import TrainingOptions


@pytest.mark.parametrize(
    ("model", "training", "limit", "words"),
    [
        ("ugnn", {"epochs": 300}, None, "300"),
        ("ugnn", {"epochs": 30}, None, "30 of 300"),
        ("ugnn", {"epochs": 30}, 60_000, "30 of 300"),
        ("ugnn", {"epochs": 1}, 512, "1 of 300, 512 images"),
        ("ugnn", {"epochs": 9, "steps": 49, "batch_size": 1024}, None, "1 of 300"),
        ("ugnn", {"epochs": 9, "steps": 61, "batch_size": 1024}, None, "1.24 of 300"),
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
    assert budget(folder) == words


def test_a_run_without_weights_has_no_origin(tmp_path: Path) -> None:
    assert trained_with(RunFolder(tmp_path)) == {}
