"""A training and its data set: the domain holds all of it, and the run lies outside of it."""

from pathlib import Path

import numpy as np
import pytest
from data.tiny import png, write_folder

from unitmargin.data import DataError, joint_domain
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.opening import open_dataset
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.train import train_run
from unitmargin.training.options import TrainingOptions
from unitmargin.training.sample_trainer import SampleTrainer


def recipe(data: DataOptions, epochs: int = 2) -> Recipe:
    return Recipe(
        name="own",
        data=data,
        model=ModelOptions(name="dense_ugnn", options={"hidden": [2]}),
        training=TrainingOptions(epochs=epochs, batch_size=16),
    )


def scaled_arrays(folder: Path) -> DataOptions:
    """Inputs in [0, 1] to train, as a scaler puts them, and test inputs that reach beyond."""
    train = np.linspace(0.0, 1.0, 80).reshape(40, 2)
    np.savez(
        folder / "a.npz", x_train=train, x_test=1.25 * train - 0.125,
        y_train=np.arange(40) % 2, y_test=np.arange(40) % 2,
    )  # fmt: skip
    return DataOptions(path=str(folder / "a.npz"))


def heavy_table(folder: Path) -> DataOptions:
    """A column whose longest entry, a test row, is hundreds of ranges away from all others."""
    lines = [f"{row % 7},{(row * 37) % 11},{('a', 'b')[row % 2]}" for row in range(60)]
    (folder / "a.csv").write_text("\n".join(["x,z,y", *lines]))
    (folder / "b.csv").write_text("x,z,y\n3,4,a\n5,9999,b\n")
    return DataOptions(path=str(folder / "a.csv"), test=str(folder / "b.csv"), scale="features")


@pytest.mark.parametrize("write", [scaled_arrays, heavy_table])
def test_a_run_certifies_its_own_test_samples(
    write: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a checkpoint that is gone on from has the domain of the training samples."""
    assert callable(write)
    own, folder = recipe(write(tmp_path)), RunFolder(tmp_path / "run")
    dataset = open_dataset(own)
    epoch = SampleTrainer.epoch
    with monkeypatch.context() as patch:
        patch.setattr(SampleTrainer, "epoch", lambda self, n: epoch(self, n) if n == 0 else stop())
        with pytest.raises(KeyboardInterrupt):
            train_run(own, folder)
    assert folder.checkpoint_file.is_file()
    train_run(own, folder)
    freeze_run(folder)
    assert certify_run(folder).startswith(f"certify: {len(dataset.test)} samples, ")
    (low, high), span = folder.frozen().domain or (0.0, 0.0), dataset.test.span
    assert (low, high) == joint_domain(dataset.train, dataset.test)
    assert low < span[0] < span[1] < high


def stop() -> None:
    raise KeyboardInterrupt


def test_a_run_among_its_images_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNITMARGIN_CACHE", str(tmp_path / "cache"))
    files = {
        f"{label}/{n}.png": png(n + 9 * (label == "b"), mode="L")
        for label in "ab"
        for n in range(4)
    }
    write_folder(tmp_path / "photos", files)
    monkeypatch.chdir(tmp_path / "photos")
    own = recipe(DataOptions(name="images", path="."), epochs=1)
    for place in ("runs/own", str(tmp_path / "photos/a"), "../photos/runs"):
        with pytest.raises(
            RunError,
            match="must lie outside of the images in .*photos, got .*; choose another --out",
        ):
            train_run(own, RunFolder(place))
    assert {file.name for file in (tmp_path / "photos").iterdir()} == {"a", "b"}
    for place in ("../run", ".runs/own"):  # hidden folders are left out of the images
        train_run(own, RunFolder(place))
        assert freeze_run(RunFolder(place))
        assert certify_run(RunFolder(place))


def test_tables_that_have_moved_are_stated_where_they_lie(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    own, folder = recipe(heavy_table(tmp_path / "old"), epochs=1), RunFolder(tmp_path / "run")
    train_run(own, folder)
    freeze_run(folder)
    weights = folder.weights_file.read_bytes()
    (tmp_path / "old").rename(tmp_path / "new")
    step = (
        "state where both lie: unitmargin train RECIPE --data TRAIN --set data.test=TEST --out RUN"
    )
    with pytest.raises(DataError, match=f"b.csv: .* found none; check the path, or {step}"):
        folder.dataset(tmp_path / "new/a.csv")
    with pytest.raises(DataError, match="state where both lie"):
        certify_run(folder, data=tmp_path / "new/a.csv")
    assert certify_run(folder, data=tmp_path / "new/b.csv").startswith("certify: 2 new inputs, ")
    moved = own.overridden(tmp_path / "new/a.csv").changed(
        data={"test": str(tmp_path / "new/b.csv")}
    )
    assert train_run(moved, folder).endswith("is already there")
    assert len(folder.dataset().test) == 2
    assert folder.weights_file.read_bytes() == weights
