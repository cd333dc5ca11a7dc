"""A run on shards, in one process and in a group of them."""

from pathlib import Path

import pytest
from data.test_tar_shards import write_shards
from groups import in_group
from torch import Tensor

from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import Recipe, RecipeError, parse_recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.run import run_recipe
from unitmargin.steps.train import train_run
from unitmargin.training.share import Share
from unitmargin.training.stream_trainer import StreamTrainer

pytest.importorskip("webdataset", reason="the extra `shards` is not installed")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNITMARGIN_CACHE", str(tmp_path / "cache"))


def recipe(folder: Path, epochs: int = 3, **data: object) -> Recipe:
    """Twenty shards of unequal lengths, and two of test images."""
    train = write_shards(folder, "train", [3, 5, 4, 6, 2] * 4)
    test = write_shards(folder, "test", [5, 4], first=100)
    return parse_recipe(
        {
            "name": "shards",
            "verify_samples": 4,
            "data": {"name": "shards", "path": train, "test": test, "resize": 4, **data},
            "model": {"name": "dense_ugnn", "hidden": [8, 8], "normalization": "centre"},
            "training": {"epochs": epochs, "batch_size": 16, "crop": 1, "flip": True},
        }
    )


def test_a_recipe_of_shards_walks(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    assert run_recipe(recipe(tmp_path), folder)
    assert len(folder.history()) == 3
    assert len(folder.certificates()) == 9
    assert folder.recipe() == recipe(tmp_path)
    certify_run(folder, data=None)


def test_two_processes_walk_shards_and_neither_waits_for_ever(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    assert in_group(2, lambda: run_recipe(recipe(tmp_path), folder)) == [True, True]
    assert len(folder.history()) == 3


def shares(chosen: Recipe, folder: RunFolder, pieces: int) -> list[tuple[int, int]]:
    """The samples of each share that this process takes in a training, and of its batch."""
    step, sizes = StreamTrainer._step, []

    def noted(self: StreamTrainer, share: Share, progress: float) -> Tensor:
        sizes.append((len(share.inputs), share.batch))
        return step(self, share, progress)

    StreamTrainer._step = noted  # type: ignore[method-assign]
    train_run(chosen.changed(training={"pieces": pieces}), folder)
    StreamTrainer._step = step  # type: ignore[method-assign]
    return sizes


def test_pieces_of_shards_leave_every_process_its_share(tmp_path: Path) -> None:
    chosen = recipe(tmp_path, epochs=1)
    usual, parted = (
        in_group(2, lambda pieces=n: shares(chosen, RunFolder(tmp_path / str(pieces)), pieces))
        for n in (1, 4)
    )
    assert parted == usual == [[(8, 16)] * 5] * 2
    folder = RunFolder(tmp_path / "refused")
    refused = in_group(2, lambda: refusal(chosen.changed(training={"pieces": 3}), folder))
    assert refused == ["pieces must be 1, or a multiple of the number of processes, 2"] * 2
    assert not folder.path.exists()


def refusal(chosen: Recipe, folder: RunFolder) -> str:
    with pytest.raises(ValueError, match="pieces") as raised:
        train_run(chosen, folder)
    return str(raised.value).partition(", where")[0]


def stopped(chosen: Recipe, folder: RunFolder, stop: int) -> str:
    epoch = StreamTrainer.epoch

    def until(self: StreamTrainer, number: int) -> tuple[float, float]:
        if number == stop:
            raise InterruptedError
        return epoch(self, number)

    StreamTrainer.epoch = until  # type: ignore[method-assign]
    try:
        return train_run(chosen, folder)
    except InterruptedError:
        return ""
    finally:
        StreamTrainer.epoch = epoch  # type: ignore[method-assign]


def test_a_training_on_shards_resumes_exactly(tmp_path: Path) -> None:
    chosen = recipe(tmp_path)
    whole, parted = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parted")
    train_run(chosen, whole)
    assert stopped(chosen, parted, 2) == ""
    assert parted.checkpoint_file.is_file()
    train_run(chosen, parted)
    assert parted.weights_file.read_bytes() == whole.weights_file.read_bytes()


@pytest.mark.parametrize(
    ("key", "value"), [("test_share", 0.1), ("label", "class"), ("scale", "features")]
)
def test_options_that_shards_have_no_use_for_are_refused(
    tmp_path: Path, key: str, value: object
) -> None:
    with pytest.raises(RecipeError, match=f"{key} must be left out for data set 'shards'"):
        recipe(tmp_path, **{key: value})
