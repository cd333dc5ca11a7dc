"""The command line: exit statuses, messages that name the next command, and a fast --help."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from wrong_inputs import RECIPE

from unitmargin import cli
from unitmargin.frozen import load, save
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import read_recipe


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small recipe, in a working directory of its own."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "tiny.toml"
    file.write_text(RECIPE)
    return file


def status(*arguments: object) -> Any:
    """Exit status of a command line."""
    with pytest.raises(SystemExit) as exited:
        cli.main([str(argument) for argument in arguments])
    return exited.value.code


def test_the_walk_succeeds_step_by_step_and_a_broken_head_fails_it(
    recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder("runs/tiny")
    for command, argument in (
        ("train", recipe),
        ("freeze", folder.path),
        ("certify", folder.path),
        ("verify", folder.path),
    ):
        assert status(command, argument) == 0
        last = capsys.readouterr().out.strip().splitlines()[-1]
        assert last.startswith(f"{command}: ")
        assert str(folder.path) in last
    frozen = load(folder.model_file)
    frozen.head.weight.mul_(1.01)
    save(frozen, folder.model_file)
    assert status("verify", folder.path) == 2
    assert "run `unitmargin certify runs/tiny` again" in capsys.readouterr().err
    assert status("certify", folder.path) == 0
    assert status("verify", folder.path) == 1
    found = capsys.readouterr().out
    assert "verify: FAILED upd" in found
    assert "FAILED unit_gradient" in found


def test_verify_takes_solvers_and_reproduce_shows_them(
    recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["train", recipe], ["freeze", "runs/tiny"], ["certify", "runs/tiny"]):
        assert status(*command) == 0
    options = ["--solvers", "deepfool", "fmn", "--samples", 30, "--box", "off"]
    assert status("verify", "runs/tiny", *options) == 0
    assert "6 of 6 checks passed on 30 samples" in capsys.readouterr().out
    assert status("verify", "runs/tiny", "--solvers", "none") == 2
    assert "solver must be one of sphere_tracing, " in capsys.readouterr().err
    assert status("verify", "runs/tiny", "--solvers", "fmn:stps=3") == 2
    assert "OPTION among steps, decay, first_step" in capsys.readouterr().err
    assert status("reproduce", "tightness", "--runs", "runs/tiny") == 0
    assert status("reproduce", "tightness", "--runs", "runs/tiny", "--minutes", "3") == 2
    assert "reproduce: tightness from 1 run" in capsys.readouterr().out
    text = Path("runs/paper/tightness.md").read_text()
    assert "| deepfool (" in text
    assert "| fmn (" in text
    assert status("reproduce", "speed") == 2
    assert "target must be one of accuracy, input-size, tightness" in capsys.readouterr().err


def test_the_checker_confirms_a_run_and_names_a_false_row(
    recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder("runs/tiny")
    for command in (["train", recipe], ["freeze", folder.path], ["certify", folder.path]):
        assert status(*command) == 0
    assert status("check", folder.path) == 2
    assert "run `unitmargin certify runs/tiny --inputs` first" in capsys.readouterr().err
    assert status("certify", folder.path, "--inputs") == 0
    assert status("check", folder.path) == 0
    inputs = ["--model", folder.model_file, "--inputs", folder.inputs_file]
    assert status("check", folder.certificates_file, *inputs) == 0
    table = folder.certificates_file.read_text().splitlines()
    *values, radius = table[6].split(",")
    table[6] = ",".join([*values, repr(float(radius) * (1 + 1e-6))])
    folder.certificates_file.write_text("\n".join(table) + "\n")
    capsys.readouterr()
    assert status("check", folder.path) == 1
    assert "check: NOT CONFIRMED row 5: radius " in capsys.readouterr().out
    folder.model_file.write_bytes(folder.model_file.read_bytes()[:-1])
    assert status("check", folder.path) == 2
    assert "no sound safetensors file" in capsys.readouterr().err


def test_options_change_the_recipe(recipe: Path, tmp_path: Path) -> None:
    options = ["--out", "here", "--epochs", 2, "--limit", 40, "--seed", 5]
    assert status("train", recipe, *options) == 0
    changed = read_recipe(tmp_path / "here" / "recipe.toml")
    assert (changed.training.epochs, changed.training.seed, changed.data.limit) == (2, 5, 40)
    assert changed.model == read_recipe(recipe).model
    assert not (tmp_path / "runs").exists()


def test_minutes_become_steps(recipe: Path, tmp_path: Path) -> None:
    assert status("train", recipe, "--out", "timed", "--minutes", 0.002) == 0
    assert read_recipe(tmp_path / "timed" / "recipe.toml").training.steps > 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["train", "none.toml"], "no recipe none.toml; pass a file, or one of"),
        (["run", "none"], "no recipe none; pass a file, or one of"),
        (["freeze", "runs/x"], "runs/x is no run folder; check the path, or begin with"),
        (["certify", "."], "run `unitmargin freeze .` first"),
        (["verify", "."], "run `unitmargin train RECIPE` first"),
        (["report", "."], "run `unitmargin train RECIPE` first"),
    ],
)
def test_missing_files_exit_with_2_and_name_the_next_command(
    recipe: Path, command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(*command) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("unitmargin: ")
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("steps", "command", "message"),
    [
        (["train"], "certify", "unitmargin freeze"),
        (["train"], "verify", "unitmargin freeze"),
        (["train", "freeze"], "verify", "unitmargin certify"),
        (["train", "freeze"], "report", "unitmargin certify"),
    ],
)
def test_a_step_taken_too_early_names_the_one_before(
    recipe: Path, steps: list[str], command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in steps:
        assert status(step, recipe if step == "train" else "runs/tiny") == 0
    capsys.readouterr()
    assert status(command, "runs/tiny") == 2
    assert f"run `{message} runs/tiny` first" in capsys.readouterr().err


def test_wrong_recipes_exit_with_2(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe.write_text(RECIPE.replace("epochs", "epoch"))
    assert status("train", recipe) == 2
    assert "training.epoch is no option" in capsys.readouterr().err
    recipe.write_text(RECIPE.replace("16", "160"))
    assert status("train", recipe) == 2
    assert "J J^T = I" in capsys.readouterr().err


def test_another_recipe_in_the_same_folder_exits_with_2(
    recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status("train", recipe) == 0
    assert status("train", recipe, "--seed", 1) == 2
    assert "choose another --out" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["fly"], ["freeze"], ["train", "digits", "--speed", "9"], []])
def test_wrong_command_lines_exit_with_2(command: list[str], recipe: Path) -> None:
    assert status(*command) == 2


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (KeyboardInterrupt(), 130, "a training goes on after its last whole epoch if called again"),
        (FloatingPointError("loss is nan"), 2, "unitmargin: loss is nan"),
        (OSError("disk full"), 2, "unitmargin: disk full"),
        (MemoryError("Unable to allocate 7 TiB"), 2, "7 TiB; use fewer samples (--limit)"),
        (RecursionError("too deep"), 2, "must not be nested so deeply"),
        (ModuleNotFoundError("No module named 'PIL'", name="PIL"), 2, "No module named 'PIL'; run"),
        (BrokenPipeError(), 141, ""),
        (KeyError("weight"), 70, "this is a mistake of unitmargin"),
    ],
)
def test_interrupts_and_failures_of_training(
    recipe: Path,
    error: BaseException,
    expected: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("unitmargin.steps.train.train_run", fail)
    assert status("train", recipe) == expected
    assert message in capsys.readouterr().err


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_help_lists_the_commands_and_imports_neither_torch_nor_pydantic() -> None:
    code = (
        "import sys\n"
        "from unitmargin.cli import main\n"
        "try:\n    main(['--help'])\n"
        "finally:\n    print({'torch', 'pydantic'} & set(sys.modules), file=sys.stderr)\n"
    )
    done = python(code)
    assert done.returncode == 0
    assert done.stderr.strip().splitlines()[-1] == "set()"
    for command in cli.COMMANDS:
        assert command in done.stdout
    assert (
        "Exit status: 0 success, 1 a promise broken or not confirmed, 2 a wrong input"
        in done.stdout
    )


def test_the_package_is_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unitmargin", "verify", "--help"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "exit status 1 if one is broken" in " ".join(done.stdout.split())


@pytest.mark.parametrize(("given", "used"), [(None, "1"), ("0", "0")])
def test_large_pages_are_asked_for_unless_the_user_says_otherwise(
    given: str | None, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cli.HUGE_PAGES, given or "")
    if given is None:
        monkeypatch.delenv(cli.HUGE_PAGES)
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert os.environ[cli.HUGE_PAGES] == used


def test_a_recipe_may_begin_with_a_byte_order_mark(recipe: Path) -> None:
    recipe.write_text(RECIPE, encoding="utf-8-sig")
    assert status("train", recipe) == 0


def test_a_device_that_is_not_there_is_one_line_and_writes_nothing(
    recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status("train", recipe, "--device", "gpu") == 2
    assert capsys.readouterr().err.startswith("unitmargin: device must be one that torch can use")
    assert list(recipe.parent.iterdir()) == [recipe]


def test_a_result_is_not_lost_to_the_encoding_of_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))

    def measure() -> int:
        print("0.99 ± 0.01")
        return 0

    monkeypatch.setitem(cli.COMMANDS, "demo", measure)
    assert status("demo") == 0
    sys.stdout.flush()
    assert written.getvalue() == b"0.99 \\u00b1 0.01\n"
