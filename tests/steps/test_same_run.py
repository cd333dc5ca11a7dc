"""A run is one recipe on one content of data, whatever lies where, and whoever writes."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from data.tiny import png, write_folder
from safetensors.torch import load_file

from unitmargin.data import as_samples
from unitmargin.models import DenseUGNN
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.history import write_history
from unitmargin.runs.lock import LockedError
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.report import report_run
from unitmargin.steps.train import train_run
from unitmargin.steps.verify import verify_run
from unitmargin.training.checkpoint import read_checkpoint
from unitmargin.training.options import TrainingOptions
from unitmargin.training.processes import Processes
from unitmargin.training.train import EpochRecord, train


def write_points(file: Path, shift: float = 0.0, right: bool = True) -> Path:
    """Two clouds of points in the plane; test labels that are wrong unless ``right``."""
    random = np.random.RandomState(0)
    labels = np.arange(40) % 2
    points = (0.1 * random.randn(40, 2) + labels[:, None] + shift).astype(np.float32)
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        file,
        x_train=points,
        y_train=labels,
        x_test=points[:10],
        y_test=labels[:10] if right else 1 - labels[:10],
    )
    return file


def recipe_of(data: Path, name: str = "npz", **training: object) -> Recipe:
    options = {"epochs": 5, "batch_size": 20, "learning_rate": 0.05} | training
    return Recipe(
        name="tiny",
        data=DataOptions(name=name, path=str(data)),
        model=ModelOptions(name="dense_ugnn"),
        training=TrainingOptions(**options),
        verify_samples=8,
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_points(tmp_path / "data" / "points.npz")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def interrupt(
    recipe: Recipe, folder: RunFolder, monkeypatch: pytest.MonkeyPatch, epoch: int = 3
) -> None:
    """Train, and be interrupted in an epoch."""

    def stop(file: Path, history: list[EpochRecord]) -> None:
        write_history(file, history)
        if len(history) == epoch:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("unitmargin.steps.train.write_history", stop)
        with pytest.raises(KeyboardInterrupt):
            train_run(recipe, folder)
    assert len(read_checkpoint(folder.checkpoint_file).history) == epoch - 1


def contents(folder: RunFolder) -> dict[str, bytes]:
    files = (file for file in folder.path.iterdir() if not file.name.startswith("."))
    return {file.name: file.read_bytes() for file in files}


# --- Class names -------------------------------------------------------------------------------


def write_images(root: Path, second: str) -> Path:
    names = ("cat", second)
    splits = {"train": 4, "test": 3}
    files = {
        f"{split}/{name}/{index}.png": png(40 * index + 20 * names.index(name), (2, 2), "L")
        for split, count in splits.items()
        for name in names
        for index in range(count)
    }
    return write_folder(root, files)


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNITMARGIN_CACHE", str(tmp_path / "cache"))
    return write_images(tmp_path / "images", "dog")


def test_a_class_folder_renamed_after_freezing_stops_with_both_lists(
    images: Path, folder: RunFolder
) -> None:
    train_run(recipe_of(images, "images"), folder)
    freeze_run(folder)
    certify_run(folder)
    for split in ("train", "test"):
        (images / split / "dog").rename(images / split / "ape")
    message = (
        f"class names of the data must be those of {folder.weights_file}, cat, dog, got ape, cat; "
    )
    for verb in (certify_run, verify_run, lambda folder: freeze_run(folder, images)):
        with pytest.raises(ValueError, match=re.escape(message)):
            verb(folder)
    with pytest.raises(ValueError, match=re.escape(message)):
        train_run(recipe_of(images, "images", epochs=6), folder)


def test_a_model_without_its_weights_still_knows_its_classes(
    images: Path, folder: RunFolder
) -> None:
    train_run(recipe_of(images, "images"), folder)
    freeze_run(folder)
    folder.weights_file.unlink()
    for split in ("train", "test"):
        (images / split / "dog").rename(images / split / "ape")
    message = f"must be those of {folder.model_file}, cat, dog, got ape, cat"
    with pytest.raises(ValueError, match=re.escape(message)):
        certify_run(folder)


# --- A check without a sample ------------------------------------------------------------------


def test_a_check_without_a_sample_is_not_run(tmp_path: Path, folder: RunFolder) -> None:
    """All test labels are wrong, so no certified sample is right and none is attacked."""
    train_run(recipe_of(write_points(tmp_path / "wrong.npz", right=False), epochs=20), folder)
    freeze_run(folder)
    assert "clean 0.0000" in certify_run(folder)
    message, passed = verify_run(folder)
    assert passed
    reason = "no solver found a point for a certified sample that was right"
    assert "verify: sphere_tracing without box: found 0 of 0" in message
    assert f"verify: not run solvers_outside_radius: {reason}" in message
    assert "verify: 5 of 5 checks passed on 8 samples" in message
    found = {row.name: row for row in folder.findings().checks}
    assert found["solvers_outside_radius"].passed is None
    report_run(folder)
    assert '5 checks passed</span> <span class="badge">1 not run' in re.sub(
        r"\s+", " ", folder.report_html.read_text()
    )
    assert re.search(rf"\({reason}\) \|  \|  \| not run \|", folder.report_md.read_text())


# --- Data that changed, data that moved --------------------------------------------------------


def test_an_interrupted_training_goes_on_with_the_same_data_alone(
    data: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of(data)
    interrupt(recipe, folder, monkeypatch)
    before = contents(folder)
    write_points(data, shift=0.25)
    message = f"{folder.checkpoint_file} is of other training samples: their SHA-256 is"
    with pytest.raises(ValueError, match=re.escape(message)):
        train_run(recipe, folder)
    assert contents(folder) == before
    write_points(data)
    train_run(recipe, folder)
    other = RunFolder(folder.path.with_name("other"))
    train_run(recipe, other)
    mine, whole = (load_file(run.weights_file) for run in (folder, other))
    assert all(torch.equal(mine[name], whole[name]) for name in whole)


def test_a_checkpoint_in_python_goes_on_with_the_same_data_alone(tmp_path: Path) -> None:
    x, y = torch.rand(20, 2), torch.arange(20) % 2
    file, options = tmp_path / "checkpoint.safetensors", {"epochs": 2, "quiet": True}
    train(DenseUGNN((2,), 2), (x, y), (x, y), checkpoint=file, **options)
    with pytest.raises(ValueError, match="is of other training samples"):
        train(DenseUGNN((2,), 2), (x + 1, y), (x, y), checkpoint=file, **options)
    with pytest.raises(ValueError, match="is of other test samples"):
        train(DenseUGNN((2,), 2), (x, y), (x, 1 - y), checkpoint=file, **options)
    with pytest.raises(ValueError, match=r"features.1 is CholeskyLinear .*, not BjorckLinear"):
        train(DenseUGNN((2,), 2, linear="bjorck"), (x, y), (x, y), checkpoint=file, **options)
    train(DenseUGNN((2,), 2), as_samples((x, y)), (x, y), checkpoint=file, **options)


def test_data_that_changed_after_the_training_are_refused_by_every_verb(
    data: Path, folder: RunFolder
) -> None:
    recipe = recipe_of(data)
    train_run(recipe, folder)
    freeze_run(folder)
    certify_run(folder)
    write_points(data, shift=0.25)
    for verb in (certify_run, verify_run, lambda folder: freeze_run(folder, data)):
        with pytest.raises(ValueError, match="is of other training samples: their SHA-256"):
            verb(folder)
    assert "is already there" in train_run(recipe, folder)


def test_a_run_goes_on_where_its_data_have_moved(
    data: Path, tmp_path: Path, folder: RunFolder
) -> None:
    recipe = recipe_of(data)
    train_run(recipe, folder)
    moved = tmp_path / "elsewhere.npz"
    shutil.move(data, moved)
    freeze_run(folder)
    with pytest.raises(ValueError, match=re.escape(str(data))):
        certify_run(folder)
    certify_run(folder, data=moved)
    _, passed = verify_run(folder, data=moved)
    assert passed
    assert "is already there" in train_run(recipe_of(moved), folder)
    assert folder.recipe().data.path == str(moved)
    certify_run(folder)


def test_whether_a_run_is_trained_is_what_its_first_process_found(
    data: Path, tmp_path: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It rewrites the recipe of data that have moved, before or after the others read it."""
    train_run(recipe_of(data), folder)
    moved = shutil.move(data, tmp_path / "elsewhere.npz")
    found = iter([[False, False], [True, False]])
    monkeypatch.setattr(Processes, "gather", lambda *given: next(found))
    second = Processes(1, 2), torch.device("cpu")
    monkeypatch.setattr("unitmargin.steps.train.join_processes", lambda device: second)
    assert "is already there" in train_run(recipe_of(moved), folder)
    assert [*found] == []


def test_an_interrupted_training_goes_on_where_its_data_have_moved(
    data: Path, tmp_path: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(recipe_of(data), folder, monkeypatch)
    moved = shutil.move(data, tmp_path / "elsewhere.npz")
    train_run(recipe_of(moved), folder)
    assert len(folder.history()) == 5


# --- Recipes that were edited ------------------------------------------------------------------

EDITS: dict[str, tuple[str, str, str]] = {
    "linear": ("[model]", '[model]\nlinear = "bjorck"', "features.1 is CholeskyLinear .*, not Bj"),
    "activation": ("[model]", '[model]\nactivation = "abs"', "features.2 is MaxMin, not Abs"),
    "head": ("[model]", '[model]\nhead = "lbfgs"', "head is SimplexUPD .*, not LbfgsUPD"),
    "widths": ("[model]", "[model]\nhidden = [2]", "features.3 is CholeskyLinear .*, not nothing"),
    "loss": ('"offset_cross_entropy"', '"multi_margin"', "with loss = 'offset_cross_entropy', not"),
    "epochs": ("epochs = 5", "epochs = 500", "was trained with epochs = 5, not 500; go on as"),
}


@pytest.mark.parametrize("name", EDITS)
def test_weights_know_what_they_were_trained_as(name: str, data: Path, folder: RunFolder) -> None:
    train_run(recipe_of(data), folder)
    old, changed, message = EDITS[name]
    text = folder.recipe_file.read_text()
    assert old in text
    folder.recipe_file.write_text(text.replace(old, changed))
    with pytest.raises(ValueError, match=message):
        freeze_run(folder)
    assert not folder.model_file.exists()


def test_what_follows_the_training_may_be_edited(data: Path, folder: RunFolder) -> None:
    train_run(recipe_of(data), folder)
    text = folder.recipe_file.read_text()
    folder.recipe_file.write_text(text.replace('dtype = "float32"', 'dtype = "float64"'))
    freeze_run(folder)
    assert folder.frozen().dtype == torch.float64


def test_a_model_of_earlier_weights_is_refused(data: Path, folder: RunFolder) -> None:
    recipe = recipe_of(data, schedule="constant")
    train_run(recipe, folder)
    freeze_run(folder)
    certify_run(folder)
    train_run(recipe.changed(training={"epochs": 6}), folder)
    for verb in (certify_run, verify_run, report_run):
        with pytest.raises(RunError, match="is not of the weights in .*; run `unitmargin freeze"):
            verb(folder)
    freeze_run(folder)
    certify_run(folder)


# --- Another number of epochs ------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_more_epochs_of_a_constant_schedule_extend_a_run_bit_by_bit(
    data: Path, folder: RunFolder, optimizer: str
) -> None:
    recipe = recipe_of(data, schedule="constant", optimizer=optimizer)
    train_run(recipe, folder)
    message = train_run(recipe.changed(training={"epochs": 7}), folder)
    assert message.startswith("train: 7 epochs")
    whole = RunFolder(folder.path.with_name("whole"))
    train_run(recipe.changed(training={"epochs": 7}), whole)
    mine, other = (load_file(run.weights_file) for run in (folder, whole))
    assert all(torch.equal(mine[name], other[name]) for name in other)
    assert len(folder.history()) == 7
    assert folder.recipe() == whole.recipe()


def test_an_interrupted_extension_goes_on(
    data: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = (recipe_of(data, schedule="constant", epochs=n) for n in (2, 5))
    train_run(short, folder)
    interrupt(long, folder, monkeypatch, epoch=4)
    with pytest.raises(ValueError, match="was trained with epochs = 2, not 5"):
        freeze_run(folder)
    train_run(long, folder)
    whole = RunFolder(folder.path.with_name("whole"))
    train_run(long, whole)
    mine, other = (load_file(run.weights_file) for run in (folder, whole))
    assert all(torch.equal(mine[name], other[name]) for name in other)


def test_a_run_that_is_ended_early_is_evaluated_and_reported(
    data: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = recipe_of(data, schedule="constant", epochs=20, evaluate_every=10)
    interrupt(long, folder, monkeypatch, epoch=4)
    assert train_run(long.changed(training={"epochs": 3}), folder).startswith("train: 3 epochs, cl")
    assert [record.evaluated for record in folder.history()] == [False, False, True]
    assert (folder.origin().identity.options.epochs, folder.recipe().training.epochs) == (3, 3)
    freeze_run(folder)
    certify_run(folder)
    verify_run(folder)
    report_run(folder)
    text = (folder.path / "report.html").read_text(encoding="utf-8")
    assert "clean after 3 epochs, the best of all" in text


LENGTHS: dict[str, Callable[[Recipe], Recipe]] = {
    "longer": lambda recipe: recipe.changed(training={"epochs": 6}),
    "shorter": lambda recipe: recipe.changed(training={"epochs": 4}),
}


@pytest.mark.parametrize("schedule", ["linear", "halving", "one_cycle"])
@pytest.mark.parametrize("length", LENGTHS)
def test_a_schedule_that_was_spread_over_all_epochs_says_why_not(
    length: str, schedule: str, data: Path, folder: RunFolder
) -> None:
    recipe = recipe_of(data, schedule=schedule)
    train_run(recipe, folder)
    before = contents(folder)
    message = "holds 10 steps of a training of 10, "
    if length == "shorter":
        message += "more than the 8 of the one that is asked for; "
    else:
        message += (
            f"which under the schedule '{schedule}' are no part of one of 12; .* under the "
            "schedule 'constant' if it may have to be extended"
        )
    with pytest.raises(ValueError, match=message):
        train_run(LENGTHS[length](recipe), folder)
    assert contents(folder) == before


def test_an_extension_needs_its_checkpoint(data: Path, folder: RunFolder) -> None:
    recipe = recipe_of(data, schedule="constant")
    train_run(recipe, folder)
    folder.checkpoint_file.unlink()
    before = contents(folder)
    with pytest.raises(ValueError, match="with checkpoint.safetensors alone, which is gone; train"):
        train_run(recipe.changed(training={"epochs": 6}), folder)
    assert contents(folder) == before


# --- One writer --------------------------------------------------------------------------------


def test_who_comes_second_into_a_run_folder_is_told_who_holds_it(
    data: Path, folder: RunFolder
) -> None:
    recipe = recipe_of(data)
    with folder.hold(), pytest.raises(LockedError, match="is being written by process .* since"):
        train_run(recipe, folder)
    assert contents(folder) == {}
    train_run(recipe, folder)
    freeze_run(folder)
    certify_run(folder)
    verify_run(folder)
    before = contents(folder)
    for verb in (freeze_run, certify_run, verify_run, report_run):
        with folder.hold(), pytest.raises(LockedError, match="is being written by process"):
            verb(folder)
    assert contents(folder) == before
