"""The explore step: one page of a frozen run, from the command line and from Python."""

from pathlib import Path

import pytest

import unitmargin as um
from unitmargin.foundation.files import file_sha256
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.steps.explore import explore_run
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.train import train_run
from unitmargin.training.options import TrainingOptions

TINY = Recipe(
    name="tiny",
    data=DataOptions(name="moons", limit=60),
    model=ModelOptions(name="dense_ugnn", options={"hidden": [2]}),
    training=TrainingOptions(epochs=1, batch_size=32),
)


def test_a_frozen_run_becomes_a_page(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(RunError, match="is no run folder; check the path"):
        um.explore(folder.path)
    train_run(TINY, folder)
    freeze_run(folder)
    said = explore_run(folder, samples=7)
    text = folder.explore_html.read_text()
    size = f"{len(text) / 1e6:.1f} MB"
    assert said == f"explore: {size}, opens in any browser -> {folder.explore_html}"
    assert file_sha256(folder.model_file) in text
    assert "7 test samples" in text
    assert "tiny" in text
    assert str(tmp_path) not in text
    assert um.explore(str(folder.path), samples=7) == folder.explore_html
    assert folder.explore_html.read_text() == text
