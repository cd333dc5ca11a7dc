"""The reproduce step: what it trains, what it leaves alone, and the files it writes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from certified import certified

from unitmargin.paper import TARGETS
from unitmargin.paper.networks import row_recipe
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import Recipe
from unitmargin.steps.reproduce import (
    Budget,
    Verbs,
    evaluate_rows,
    known_targets,
    seeds_of,
    train_rows,
    write_outputs,
)

ROW = row_recipe("UGNN+OPLU+updU", "raw")
TARGET = replace(TARGETS["accuracy"], recipes=(ROW,))


class Recorder:
    """Verbs that leave the files of a step, and remember their calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def verbs(self) -> Verbs:
        return Verbs(self.train, self.leave("certificates_file"), self.leave("solvers_file"))

    def broken(self) -> Verbs:
        return replace(self.verbs(), verify=lambda folder: not self.verbs().verify(folder))

    def train(self, recipe: Recipe, folder: RunFolder) -> None:
        folder.start(recipe)
        self.calls.append(f"train {folder.path.name}")

    def leave(self, file: str) -> Callable[[RunFolder], bool]:
        def verb(folder: RunFolder) -> bool:
            getattr(folder, file).touch()
            self.calls.append(f"{file} {folder.path.name}")
            return True

        return verb


def test_rows_are_trained_certified_and_attacked_once(tmp_path: Path) -> None:
    recorder = Recorder()
    budget = Budget(epochs=3, limit=7, seeds=seeds_of(2), samples=5)
    folders = train_rows([TARGET, TARGET], budget, tmp_path, recorder.verbs())
    assert [folder.name for folder in folders] == [f"ugnn-oplu-updu-raw-seed{n}" for n in (0, 1)]
    assert evaluate_rows([TARGET], folders, recorder.verbs())
    assert recorder.calls == [
        "train ugnn-oplu-updu-raw-seed0",
        "train ugnn-oplu-updu-raw-seed1",
        "certificates_file ugnn-oplu-updu-raw-seed0",
        "solvers_file ugnn-oplu-updu-raw-seed0",
        "certificates_file ugnn-oplu-updu-raw-seed1",
        "solvers_file ugnn-oplu-updu-raw-seed1",
    ]
    recipe = RunFolder(folders[1]).recipe()
    assert (recipe.training.epochs, recipe.training.seed, recipe.data.limit) == (3, 1, 7)
    assert recipe.verify_samples == 5
    recorder.calls.clear()
    evaluate_rows([TARGET], folders, recorder.verbs())
    assert recorder.calls == []


def test_a_broken_promise_stops_no_other_row(tmp_path: Path) -> None:
    recorder = Recorder()
    folders = train_rows([TARGET], Budget(seeds=(0, 1)), tmp_path, recorder.verbs())
    assert not evaluate_rows([TARGET], folders, recorder.broken())
    assert [call.split()[0] for call in recorder.calls[2:]] == [
        "certificates_file",
        "solvers_file",
    ] * 2


def test_what_no_target_attacks_is_certified_alone(tmp_path: Path) -> None:
    recorder = Recorder()
    target = replace(TARGET, searches=False)
    folders = train_rows([target], Budget(), tmp_path, recorder.verbs())
    evaluate_rows([target], folders, recorder.verbs())
    assert [call.split()[0] for call in recorder.calls] == ["train", "certificates_file"]


def test_a_budget_without_changes_is_the_recipe(tmp_path: Path) -> None:
    (recipe,) = Budget().recipes(ROW)
    assert (recipe.training.epochs, recipe.verify_samples) == (300, 500)
    (named,) = Budget(data=tmp_path / "images").recipes(ROW)
    assert named.data.path == str(tmp_path / "images")


@pytest.mark.parametrize(("limit", "samples"), [(None, 500), (512, 26), (1, 1), (50_000, 500)])
def test_the_papers_share_of_limited_samples_is_attacked(limit: int | None, samples: int) -> None:
    (recipe,) = Budget(limit=limit).recipes(ROW)
    assert recipe.verify_samples == samples


def test_both_files_hold_the_tables(tmp_path: Path) -> None:
    message = write_outputs("tightness", [], tmp_path / "out")
    assert message.startswith("reproduce: tightness from 0 runs -> ")
    markdown = (tmp_path / "out/tightness.md").read_text()
    latex = (tmp_path / "out/tightness.tex").read_text()
    for label in ("tab:dist-table", "tab:further-map"):
        assert f"## {label}" in markdown
        assert rf"\label{{{label}}}" in latex
    assert markdown.count("not run") == latex.count("not run") == 14 + 36
    assert "UGNN+MaxMin+updB | norm | no | 0.96 ± 0.044 | 7327" in markdown


def test_figures_stand_beside_their_captions(tmp_path: Path) -> None:
    run = certified(tmp_path / "run", ROW, [0.2, -0.1])
    write_outputs("robust-accuracy", [run.path], tmp_path)
    markdown = (tmp_path / "robust-accuracy.md").read_text()
    for name in ("rob-accuracy", "robust-lineplot"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert f"![{name}]({name}.png)" in markdown
    assert not list(tmp_path.glob("*.partial"))


def test_an_unknown_target_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="accuracy, .*, upd, all, got 'speed'"):
        write_outputs("speed", [], tmp_path)
    assert list(known_targets("all")) == list(TARGETS)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"{tmp_path} is no run folder"):
        write_outputs("accuracy", [tmp_path], tmp_path)


def test_no_seed_is_no_training() -> None:
    with pytest.raises(ValueError, match="seeds must be at least 1, got 0"):
        seeds_of(0)
