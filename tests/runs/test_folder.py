"""The run folder: names, whole files, and errors that name the next command."""

import errno
import re
from pathlib import Path

import pytest
import torch
from certified import certified, write_made_searches, write_made_weights
from searches import made_search

from unitmargin.data import Split
from unitmargin.models import DenseUGNN
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.history import write_history
from unitmargin.runs.opening import open_dataset, open_model
from unitmargin.runs.provenance import commit, hardware, provenance
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe, write_recipe
from unitmargin.runs.weights import write_weights
from unitmargin.training.options import TrainingOptions
from unitmargin.training.train import EpochRecord

ROW = "paper/ugnn-maxmin-updu-raw"
PROVENANCE = {"hardware": "", "torch": "", "commit": ""}


def test_every_file_has_its_own_name(tmp_path: Path) -> None:
    files = [value for key, value in vars(RunFolder(tmp_path)).items() if key != "path"]
    assert len(files) == len(set(files)) >= 10
    assert all(file.parent == tmp_path for file in files)


@pytest.mark.parametrize(
    ("read", "command"),
    [
        (RunFolder.recipe, "train RECIPE"),
        (RunFolder.dataset, "train RECIPE"),
        (RunFolder.history, "train RECIPE"),
        (RunFolder.frozen, "freeze {path}"),
        (RunFolder.certificates, "certify {path}"),
        (RunFolder.searches, "verify {path}"),
        (RunFolder.findings, "verify {path}"),
        (RunFolder.measurements, "verify {path}"),
    ],
)
def test_a_missing_file_names_the_command_that_writes_it(
    read: object, command: str, tmp_path: Path
) -> None:
    expected = command.format(path=tmp_path)
    with pytest.raises(RunError, match=re.escape(f"run `unitmargin {expected}` first")):
        read(RunFolder(tmp_path))  # type: ignore[operator]


def test_what_was_made_of_a_model_is_refused_beside_weights_of_another(tmp_path: Path) -> None:
    run = certified(tmp_path / "run", ROW, [1.0, 0.4])
    write_made_weights(run, PROVENANCE)
    search = made_search([1.0, 0.4], [2.0, 0.5])
    search.label[:] = 1
    write_made_searches(run, [search])
    reads = RunFolder.certificates, RunFolder.findings, RunFolder.searches
    for read in reads:
        read(run)
    write_weights(run.weights_file, DenseUGNN((2,), 2), run.origin())
    for read in (*reads, RunFolder.frozen):
        with pytest.raises(RunError, match="is not of the weights in .*; run `unitmargin freeze"):
            read(run)


def test_the_history_of_an_extension_is_not_that_of_the_weights(tmp_path: Path) -> None:
    run = certified(tmp_path / "run", ROW, [1.0])
    write_made_weights(run, PROVENANCE)
    write_history(run.history_file, [EpochRecord(1, 0.1, 0.5, 0.4, 0.0, 0.01, 1.0)])
    assert len(run.history()) == 1
    run.start(run.recipe().changed(training={"epochs": 9}))
    with pytest.raises(RunError, match="must have the length that recipe.toml asks for"):
        run.history()


def test_a_folder_belongs_to_one_recipe(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.start(Recipe(name="a"))
    folder.weights_file.touch()
    folder.start(Recipe(name="a"))
    assert folder.recipe() == Recipe(name="a")
    with pytest.raises(RunError, match="recipe: training.seed is 0, not 7; choose another --out"):
        folder.start(Recipe(name="a", training=TrainingOptions(seed=7)))
    assert folder.recipe() == Recipe(name="a")


def test_a_folder_in_which_nothing_was_trained_takes_the_mended_recipe(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.start(Recipe(name="a", training=TrainingOptions(learning_rate=1e30)))
    folder.start(Recipe(name="a"))
    assert folder.recipe() == Recipe(name="a")


def test_the_place_of_the_data_and_the_epochs_may_change(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.start(Recipe(name="a", data=DataOptions(name="npz", path="here.npz")))
    changed = folder.recipe().changed(data={"path": "there.npz"}, training={"epochs": 7})
    folder.start(changed)
    assert folder.recipe() == changed


def test_the_data_set_is_limited(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.start(Recipe(name="a", data=DataOptions(name="digits", limit=30)))
    dataset = folder.dataset()
    assert (len(dataset.train), len(dataset.test)) == (30, 30)


def test_the_model_is_drawn_from_the_seed_and_normalised_by_the_data() -> None:
    recipe = Recipe(
        name="a",
        data=DataOptions(name="moons"),
        model=ModelOptions(name="dense_ugnn", normalization="channel"),
    )
    dataset = open_dataset(recipe)
    torch.manual_seed(5)
    first = open_model(recipe, dataset)
    torch.manual_seed(6)
    second = open_model(recipe, dataset)
    for mine, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(mine, other)
    inputs = dataset.train.batch(slice(None))[0]
    assert (first.normalize.mean - inputs.mean(0)).abs().max() <= 1e-6
    assert (first.normalize.std - inputs.std(0, correction=0)).abs().max() <= 1e-6
    assert (first.in_shape, first.n_classes) == ((2,), 2)


def test_provenance_says_where_it_was_made() -> None:
    words = provenance()
    assert words["hardware"] == hardware()
    capability = torch.backends.cpu.get_cpu_capability()
    assert f" with {capability}, {torch.get_num_threads()} thread" in words["hardware"]
    assert provenance("float32")["hardware"] == f"{hardware()}, products in float32"
    assert words["torch"] == str(torch.__version__)
    assert re.fullmatch("([0-9a-f]{4,40})?", commit())


@pytest.mark.parametrize("name", ["split.json", ".gitkeep", ".lock", ".holder"])
def test_a_folder_of_a_run_that_has_no_recipe_yet_is_its_own(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    RunFolder(tmp_path).require_own(Recipe(name="a"))
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "cats").mkdir()
    with pytest.raises(RunError, match="must be absent, empty or a run folder, got one with cats"):
        RunFolder(tmp_path).require_own(Recipe(name="a"))


@pytest.mark.parametrize(
    "name", ["model.safetensors", "certificates.csv", "report.html", "history.csv", "checks.json"]
)
def test_without_a_recipe_files_that_are_named_like_those_of_a_run_are_left_alone(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("precious")
    with pytest.raises(RunError, match=f"got one with {name}; choose another --out"):
        RunFolder(tmp_path).require_own(Recipe(name="a"))


def test_an_exported_folder_is_none_of_a_run(tmp_path: Path) -> None:
    folder, recipe = RunFolder(tmp_path), Recipe(name="a")
    folder.start(recipe)
    folder.model_file.touch()
    folder.require_own(recipe)
    (tmp_path / "model.onnx").touch()
    with pytest.raises(RunError, match=r"got one with the model\.onnx of an export; choose"):
        folder.require_own(recipe)
    for file in (folder.weights_file, folder.checkpoint_file, folder.teacher_file):
        file.touch()
        folder.require_own(recipe)
        file.unlink()


def test_a_training_that_lost_its_recipe_is_its_own(tmp_path: Path) -> None:
    """So `train` writes it again, which compares what the weights were trained as."""
    folder = RunFolder(tmp_path)
    for file in (folder.weights_file, folder.history_file, folder.model_file):
        file.touch()
    folder.require_own(Recipe(name="a"))
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunError, match=r"got one with thesis\.tex; choose"):
        folder.require_own(Recipe(name="a"))


def test_the_split_of_a_run_is_not_lost_where_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, recipe = RunFolder(tmp_path / "run"), Recipe(name="a")
    train, test = ([{"label": "cat", "file": f"{n}.png", "sha256": n * 64}] for n in "01")
    split = Split(classes=["cat"], train=train, test=test)
    folder.start(recipe, split)
    before = folder.split_file.read_bytes()

    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("unitmargin.runs.folder.write_json", full)
    with pytest.raises(OSError, match="No space left"):
        folder.start(recipe, split)
    assert folder.split_file.read_bytes() == before
    folder.start(recipe)
    assert not folder.split_file.exists()


def test_a_recipe_that_somebody_wrote_is_not_replaced(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    recipe = Recipe(name="mine", data=DataOptions(name="digits"))
    text = "# precious\n" + write_recipe(recipe)
    folder.recipe_file.write_text(text)
    with pytest.raises(RunError, match="got one with a recipe.toml that somebody wrote; choose"):
        folder.start(recipe)
    assert folder.recipe_file.read_text() == text
    folder.recipe_file.write_text(write_recipe(recipe))
    (tmp_path / "thesis.tex").write_text("a chapter")
    with pytest.raises(RunError, match="got one with thesis.tex"):
        folder.start(recipe)
    (tmp_path / "thesis.tex").unlink()
    folder.start(recipe)


def test_a_lost_history_is_not_made_by_training_again(tmp_path: Path) -> None:
    run = certified(tmp_path / "run", ROW, [1.0])
    write_made_weights(run, PROVENANCE)
    for content in (None, "nonsense"):
        if content:
            run.history_file.write_text(content)
        with pytest.raises(RunError, match="put a copy back: only a training in another folder"):
            run.history()


def test_a_file_is_no_place_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="File exists"):
        RunFolder(tmp_path / "file").require_free()
    with pytest.raises(NotADirectoryError, match=f"{tmp_path}/file'$"):
        RunFolder(tmp_path / "file/below").require_free()
    with pytest.raises(FileNotFoundError, match="'/proc'$"):
        RunFolder("/proc/absent/below").require_free()
    RunFolder(tmp_path / "absent/below").require_free()
    assert not (tmp_path / "absent").exists()


def test_a_run_that_was_interrupted_in_its_first_epoch_goes_on(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    recipe = Recipe(name="mine", data=DataOptions(name="digits"))
    folder.start(recipe)
    for log in ("tensorboard", "wandb"):
        (tmp_path / log).mkdir()
    lines = folder.recipe_file.read_text().splitlines(keepends=True)
    other = [line for line in lines if not line.startswith(("pieces", "padding"))]
    assert len(other) == len(lines) - 2
    folder.recipe_file.write_text("".join(other))
    folder.start(recipe)
    assert folder.recipe_file.read_text() == "".join(lines)
    folder.recipe_file.write_text("".join([*lines[1:], lines[0]]))
    with pytest.raises(RunError, match="somebody wrote"):
        folder.start(recipe)
