"""Every table and figure from nothing: trained, certified, attacked and written by one command."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unitmargin import cli
from unitmargin.paper import TARGETS
from unitmargin.paper.networks import row_recipe
from unitmargin.runs.folder import RunFolder

SMALL = {
    "accuracy": (row_recipe("UGNN+OPLU+updU", "raw"), row_recipe("LargeConvNet", "raw")),
    "input-size": (),
    "tightness": (row_recipe("LargeConvNet", "raw"),),
    "robust-accuracy": (row_recipe("UGNN+OPLU+updU", "raw"),),
}
"""Two networks: all of them take forty minutes."""

RECORDS = 128
"""Images in each of the six files that stand for CIFAR-10 where the real ones are not at hand."""


def noise(folder: Path) -> Path:
    """Random images in the files of the binary release; a class is a colour that can be learnt."""
    generator = np.random.default_rng(0)
    folder.mkdir()
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        labels = generator.integers(0, 10, (RECORDS, 1), dtype=np.uint8)
        images = generator.integers(0, 128, (RECORDS, 3072), dtype=np.uint8) + 12 * labels
        np.concatenate((labels, images), axis=1).tofile(folder / f"{name}.bin")
    names = "airplane automobile bird cat deer dog frog horse ship truck"
    (folder / "batches.meta.txt").write_text("\n".join(names.split()) + "\n")
    return folder


def reproduce(target: str, out: Path, data: Path, *options: str) -> None:
    with pytest.raises(SystemExit) as exited:
        cli.main(["reproduce", target, "--out", str(out), "--data", str(data), *options])
    assert exited.value.code == 0


def test_a_few_rows_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, recipes in SMALL.items():
        monkeypatch.setitem(TARGETS, name, replace(TARGETS[name], recipes=recipes))
    # What costs most says nothing here: wide dense layers, and many numbers in a figure.
    for module in ("models.ugnn", "paper.networks"):
        monkeypatch.setattr(f"unitmargin.{module}.PAPER_HIDDEN", (64, 32))
    monkeypatch.setattr("unitmargin.paper.unitary_gradient.IN_SHAPE", (3, 8, 8))
    monkeypatch.setattr("unitmargin.paper.unitary_gradient.SAMPLES", 4)
    monkeypatch.setattr("unitmargin.paper.upd.DRAWS", 1)
    monkeypatch.setattr("unitmargin.paper.toy_example.GRID", 20)
    monkeypatch.setattr("unitmargin.paper.toy_example.EPOCHS", 1)
    options = ("--epochs", "1", "--limit", "12", "--samples", "1")
    data = noise(tmp_path / "cifar")
    reproduce("all", tmp_path / "out", data, *options)
    for name in TARGETS:
        text = (tmp_path / "out" / f"{name}.md").read_text()
        assert "## " in text
    accuracy = (tmp_path / "out/accuracy.md").read_text()
    assert "1 of 300, 12 images" in accuracy
    assert "1 of 200, 12 images" in accuracy
    row = RunFolder(tmp_path / "out/ugnn-oplu-updu-raw-seed0")
    before = {file.name: file.stat().st_mtime_ns for file in row.path.iterdir()}
    reproduce("robust-accuracy", tmp_path / "out", data, *options)
    assert {file.name: file.stat().st_mtime_ns for file in row.path.iterdir()} == before | {
        "recipe.toml": row.recipe_file.stat().st_mtime_ns
    }


@pytest.mark.nightly
def test_all_rows_end_to_end(tmp_path: Path) -> None:
    """``UNITMARGIN_CIFAR10`` names the real images; without it, noise stands for them."""
    real = os.environ.get("UNITMARGIN_CIFAR10")
    data = Path(real) if real else noise(tmp_path / "cifar")
    reproduce("all", tmp_path / "out", data, "--epochs", "1", "--limit", "512")
    for name in ("accuracy", "input-size", "tightness", "robust-accuracy"):
        assert "not run" not in (tmp_path / "out" / f"{name}.md").read_text()
