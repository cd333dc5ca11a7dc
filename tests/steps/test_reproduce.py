"""The reproduce step: what it trains, what it leaves alone, and the files it writes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from certified import certified, write_made_searches, write_made_weights
from searches import made_search

from unitmargin.certificates.tightness import describe_settings
from unitmargin.paper import TARGETS
from unitmargin.paper.networks import row_recipe
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import Recipe, read_recipe
from unitmargin.runs.shipped import embedded_recipe
from unitmargin.steps import reproduce as step
from unitmargin.steps.reproduce import (
    Budget,
    evaluate_rows,
    known_targets,
    take_over,
    train_rows,
    write_outputs,
)

ROW = row_recipe("UGNN+OPLU+updU", "raw")
TARGET = replace(TARGETS["accuracy"], recipes=(ROW,))


asked: list[tuple[tuple[object, ...], dict[str, object]]] = []
"""What the verbs below were given."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Verbs that leave the files of a step, and remember their calls."""
    done: list[str] = []
    asked.clear()

    def train(recipe: Recipe, folder: RunFolder, *_: object) -> str:
        folder.start(recipe)
        done.append(f"train {folder.path.name}")
        return "train: done"

    def leave(file: str, result: Any) -> Callable[..., Any]:
        def verb(folder: RunFolder, *given: object, **options: object) -> Any:
            getattr(folder, file).touch()
            done.append(f"{file} {folder.path.name}")
            asked.append((given, options))
            return result

        return verb

    monkeypatch.setattr(step, "recall", lambda *given: True)
    monkeypatch.setattr(step, "has_normalised_space", lambda folder: folder.path.name == "two")
    monkeypatch.setattr(step, "train_run", train)
    monkeypatch.setattr(step, "freeze_run", lambda folder: "freeze: done")
    monkeypatch.setattr(step, "certify_run", leave("certificate_facts_file", "certify: done"))
    monkeypatch.setattr(step, "verify_run", leave("checks_file", ("verify: done", True)))
    return done


def test_rows_are_trained_certified_and_attacked_once(calls: list[str], tmp_path: Path) -> None:
    budget = Budget(epochs=3, limit=7, seeds=2, samples=5)
    folders = train_rows([TARGET, TARGET], budget, tmp_path)
    assert [folder.name for folder in folders] == [f"ugnn-oplu-updu-raw-seed{n}" for n in (0, 1)]
    assert evaluate_rows([TARGET], folders, budget)
    assert calls == [
        "train ugnn-oplu-updu-raw-seed0",
        "train ugnn-oplu-updu-raw-seed1",
        "certificate_facts_file ugnn-oplu-updu-raw-seed0",
        "checks_file ugnn-oplu-updu-raw-seed0",
        "certificate_facts_file ugnn-oplu-updu-raw-seed1",
        "checks_file ugnn-oplu-updu-raw-seed1",
    ]
    recipe = RunFolder(folders[1]).recipe()
    assert (recipe.training.epochs, recipe.training.seed, recipe.data.limit) == (3, 1, 7)
    assert recipe.verify_samples == 500
    assert [given[1] for given, _ in asked if len(given) > 1] == [5, 5]
    calls.clear()
    evaluate_rows([TARGET], folders, budget)
    assert calls == []


def test_a_broken_promise_stops_no_other_row(
    calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attacking = step.attack
    monkeypatch.setattr(step, "attack", lambda *given: (attacking(*given)[0], False))
    folders = train_rows([TARGET], Budget(seeds=2), tmp_path)
    assert not evaluate_rows([TARGET], folders, Budget())
    assert [call.split()[0] for call in calls[2:]] == ["certificate_facts_file", "checks_file"] * 2


def test_what_no_target_attacks_is_certified_alone(calls: list[str], tmp_path: Path) -> None:
    target = replace(TARGET, searches=False)
    evaluate_rows([target], train_rows([target], Budget(), tmp_path), Budget())
    assert [call.split()[0] for call in calls] == ["train", "certificate_facts_file"]


@pytest.mark.parametrize(
    ("target", "solvers", "message"),
    [
        ("speed", ("fmn",), "target must be one of accuracy, .* got 'speed'"),
        ("accuracy", ("flying",), "solver must be one of .* got 'flying'"),
        ("accuracy", (), "got none; choose among them"),
    ],
)
def test_words_are_judged_before_anything_is_trained(
    target: str, solvers: tuple[str, ...], message: str, calls: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        step.reproduce(target, Budget(), tmp_path, solvers)
    assert calls == []


def test_a_budget_without_changes_is_the_recipe(tmp_path: Path) -> None:
    (recipe,) = Budget().recipes(ROW)
    assert (recipe.training.epochs, recipe.verify_samples) == (300, 500)
    (named,) = Budget(data=tmp_path / "images").recipes(ROW)
    assert named.data.path == str(tmp_path / "images")


@pytest.mark.parametrize(
    ("samples", "count", "whole"), [(None, 500, ("sphere_tracing",)), (7, 7, ())]
)
def test_sphere_tracing_searches_all_samples_unless_a_number_is_asked_for(
    samples: int | None, count: int, whole: tuple[str, ...], calls: list[str], tmp_path: Path
) -> None:
    budget = Budget(samples=samples, data=tmp_path)
    evaluate_rows([TARGET], train_rows([TARGET], budget, tmp_path), budget, ("ddn",))
    assert calls[-1].startswith("checks_file")
    (solvers, given), options = asked[-1]
    assert (solvers, given) == (("ddn",), count)
    assert options == {"data": tmp_path, "normalised": False, "whole": whole}


def test_runs_with_another_space_are_searched_in_both(calls: list[str], tmp_path: Path) -> None:
    for name, both in (("one", False), ("two", True)):
        run = trained(tmp_path / name, read_recipe(embedded_recipe(ROW)))
        evaluate_rows([TARGET], [run], Budget())
        assert asked[-1][1]["normalised"] is both


def trained(path: Path, recipe: Recipe) -> Path:
    """A folder of which nothing is known but its recipe, and that it was trained."""
    RunFolder(path).start(recipe)
    (path / "weights.safetensors").touch()
    return path


def test_runs_that_are_no_row_are_left_out(
    calls: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = read_recipe(embedded_recipe(ROW))
    row = certified(tmp_path / "a", ROW, [0.2])
    write_made_weights(row, {"hardware": "", "torch": "", "commit": ""})
    runs = [
        row.path,
        trained(tmp_path / "other", recipe.changed(model={"normalization": "scalar"})),
    ]
    assert step.take_over("robust-accuracy", [*runs, tmp_path / "a/../a"], Budget(), tmp_path)
    assert calls == []
    said = capsys.readouterr().out
    assert f"reproduce: {runs[1]} is no row of robust-accuracy, and is left out" in said
    assert "reproduce: robust-accuracy from 1 run -> " in said


@pytest.fixture
def one_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "has_normalised_space", lambda folder: False)


@pytest.mark.usefixtures("one_space")
def test_solvers_that_did_not_search_a_run_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = certified(tmp_path / "a", ROW, [1.0, 0.4])
    settings = describe_settings("sphere_tracing")
    search = replace(made_search([1.0, 0.4], [2.0, 0.5], "sphere_tracing"), settings=settings)
    search.label[:] = 1
    write_made_searches(run, [search])
    evaluate_rows([TARGET], [run.path], Budget(), ("sphere_tracing", "ddn:steps=9", "fmn"))
    evaluate_rows([TARGET], [run.path], Budget(), ("sphere_tracing",))
    evaluate_rows([TARGET], [run.path], Budget(), ("sphere_tracing:steps=300",))
    kept = f"reproduce: {run.path} keeps its searches by sphere_tracing ({settings}), without "
    step = f"; remove {run.checks_file} to search it by all\n"
    assert capsys.readouterr().out == (
        f"{kept}ddn:steps=9, fmn{step}{kept}sphere_tracing:steps=300{step}"
    )


def test_samples_and_a_space_that_were_not_searched_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = certified(tmp_path / "a", ROW, [1.0, 0.4, 0.3])
    settings = describe_settings("sphere_tracing")
    found = replace(made_search([1.0], [2.0], "sphere_tracing"), settings=settings)
    found.label[:] = 1
    write_made_searches(run, [found])
    monkeypatch.setattr(step, "has_normalised_space", lambda folder: True)
    assert run.findings().samples == 1
    for samples in (None, 1, 2, 50):
        evaluate_rows([TARGET], [run.path], Budget(samples=samples))
    said = [line.partition(", without ")[2] for line in capsys.readouterr().out.splitlines()]
    step_of = f"; remove {run.checks_file} to search it by all"
    space = "the space behind its normalisation"
    left = ["2 samples by sphere_tracing", "", "1 sample by sphere_tracing"]
    left.append(left[0])
    assert said == [f"{space}{', ' * bool(words)}{words}{step_of}" for words in left]
    behind = replace(found, space="normalised")
    write_made_searches(run, [found, behind])
    evaluate_rows([TARGET], [run.path], Budget(samples=1))
    assert capsys.readouterr().out == ""


def test_targets_that_no_run_stands_in_take_none(calls: list[str], tmp_path: Path) -> None:
    run = trained(tmp_path / "a", read_recipe(embedded_recipe(ROW)))
    with pytest.raises(ValueError, match="runs must be left out with upd, which no run stands in"):
        take_over("upd", [run], Budget(), tmp_path / "out")
    assert calls == []
    assert not any(TARGETS[name].takes(RunFolder(run)) for name in ("upd", "unitary-gradient"))


@pytest.mark.parametrize(
    "budget", [{"epochs": 7}, {"minutes": 2.0}, {"limit": 9}, {"seeds": 4}, {"device": "cuda"}]
)
def test_what_only_a_training_has_a_use_for_is_refused(
    budget: dict[str, Any], tmp_path: Path
) -> None:
    (name,) = budget
    with pytest.raises(ValueError, match=f"{name} must be left out with runs, where nothing is"):
        take_over("accuracy", [tmp_path], Budget(**budget), tmp_path)
    with pytest.raises(ValueError, match=f"{name} must be left out with toy-example, where"):
        step.reproduce("toy-example", Budget(**budget), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("one_space")
def test_a_promise_that_was_broken_is_not_forgotten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = certified(tmp_path / "a", ROW, [1.0])
    settings = describe_settings("sphere_tracing")
    search = replace(made_search([1.0], [2.0], "sphere_tracing"), settings=settings)
    search.label[:] = 1
    write_made_searches(run, [search])
    assert evaluate_rows([TARGET], [run.path], Budget())
    findings = run.findings()
    lost = findings.checks[0].model_copy(update={"passed": False})
    changes = {"passed": False, "checks": [lost, *findings.checks[1:]]}
    findings.model_copy(update=changes).write(run.checks_file)
    assert not evaluate_rows([TARGET], [run.path], Budget())
    words = f"reproduce: {run.path} broke promises when it was verified: {lost.name}\n"
    assert capsys.readouterr().out == words


def test_what_a_verb_wrote_before_its_last_file_is_made_again(
    calls: list[str], tmp_path: Path
) -> None:
    run = trained(tmp_path / "a", read_recipe(embedded_recipe(ROW)))
    for name in ("certificates.csv", "solvers.csv", "measurements.safetensors"):
        (run / name).touch()
    assert evaluate_rows([TARGET], [run], Budget())
    assert calls == ["certificate_facts_file a", "checks_file a"]


def test_runs_are_taken_over_whatever_their_length(
    calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "write_outputs", lambda target, runs, out: f"{target}: {len(runs)}")
    recipe = read_recipe(embedded_recipe(ROW)).changed(name="mine", training={"steps": 77})
    runs = [trained(tmp_path / "a", recipe), trained(tmp_path / "b", recipe)]
    (tmp_path / "a/certificates.json").touch()
    assert step.take_over("tightness", runs, Budget(), tmp_path / "out")
    assert calls == ["checks_file a", "certificate_facts_file b", "checks_file b"]
    calls.clear()
    assert step.take_over("accuracy", runs, Budget(), tmp_path / "out")
    assert calls == []


def test_of_several_targets_rows_of_the_paper_alone_are_attacked(
    calls: list[str], tmp_path: Path
) -> None:
    row = read_recipe(embedded_recipe(ROW))
    others = {"b": row.changed(name="mine"), "c": row.changed(model={"normalization": "scalar"})}
    runs = [trained(tmp_path / name, recipe) for name, recipe in ({"a": row} | others).items()]
    evaluate_rows(list(TARGETS.values()), runs, Budget())
    certified = [f"certificate_facts_file {name}" for name in "abc"]
    assert calls == [certified[0], "checks_file a", certified[1], "checks_file b", certified[2]]


def test_of_all_targets_runs_without_searches_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = {name: TARGETS[name] for name in ("tightness", "robust-accuracy")}
    monkeypatch.setattr(step, "TARGETS", some)  # the others compute their tables anew
    row = certified(tmp_path / "row", ROW, [0.2])
    message = write_outputs("all", [row.path], tmp_path / "out")
    assert "tightness from 0 runs, without 1 that no solver searched, -> " in message
    assert "robust-accuracy from 1 run -> " in message


def test_a_folder_that_is_no_run_is_named_before_anything_is_done(
    calls: list[str], tmp_path: Path
) -> None:
    row = trained(tmp_path / "a", read_recipe(embedded_recipe(ROW)))
    with pytest.raises(RunError, match="b is no run folder"):
        step.take_over("accuracy", [row, tmp_path / "b"], Budget(), tmp_path)
    (trained(tmp_path / "c", read_recipe(embedded_recipe(ROW))) / "weights.safetensors").unlink()
    with pytest.raises(
        RunError, match=r"c/weights.safetensors does not exist; run `unitmargin tra"
    ):
        step.take_over("accuracy", [row, tmp_path / "c"], Budget(), tmp_path)
    assert calls == []


def test_both_files_hold_the_tables(tmp_path: Path) -> None:
    message = write_outputs("tightness", [], tmp_path / "out")
    assert message.startswith("reproduce: tightness from 0 runs -> ")
    markdown = (tmp_path / "out/tightness.md").read_text()
    latex = (tmp_path / "out/tightness.tex").read_text()
    for label in ("tab:dist-table", "tab:further-map"):
        assert f"## {label}" in markdown
        assert rf"\label{{{label}}}" in latex
    assert markdown.count("not run") == latex.count("not run") == 14 + 36
    assert "UGNN+MaxMin+updB | norm | no |  | 0.96 ± 0.044 | 7327" in markdown


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
    with pytest.raises(ValueError, match="accuracy, .*, toy-example, all, got 'speed'"):
        write_outputs("speed", [], tmp_path)
    assert list(known_targets("all")) == list(TARGETS)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"{tmp_path} is no run folder"):
        write_outputs("accuracy", [tmp_path], tmp_path)


def test_no_seed_is_no_training() -> None:
    with pytest.raises(ValueError, match="seeds must be at least 1, got 0"):
        Budget(seeds=0)


@pytest.mark.parametrize("budget", [{"samples": 5}, {"data": Path("images")}])
def test_what_a_target_without_rows_has_no_use_for_is_refused(
    budget: dict[str, Any], tmp_path: Path
) -> None:
    (name,) = budget
    with pytest.raises(ValueError, match=f"{name} must be left out with upd, where nothing is"):
        step.reproduce("upd", Budget(**budget), tmp_path)


def test_minutes_are_no_epochs() -> None:
    with pytest.raises(ValueError, match="minutes must be left out where epochs are given, got 3"):
        Budget(epochs=7, minutes=3.0)
