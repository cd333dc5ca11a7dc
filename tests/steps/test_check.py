"""The verb check: which files it takes, what it says, and its exit status."""

import errno
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from claims import EXAMPLES, certified
from safetensors.torch import load_file
from tables import read_rows, write_rows

from unitmargin.runs.folder import RunFolder
from unitmargin.steps.check import SHOWN, check_files


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return certified(tmp_path_factory.mktemp("made"), EXAMPLES["dense"]()).path


@pytest.fixture
def run(made: Path, tmp_path: Path) -> RunFolder:
    return RunFolder(shutil.copytree(made, tmp_path / "run"))


def test_a_run_folder_and_its_table_are_the_same(run: RunFolder) -> None:
    for path in (run.path, run.certificates_file):
        message, confirmed = check_files(path)
        assert confirmed
        assert message == (
            "check: 24 certificates confirmed, 0 not, 0 claim nothing, profile float64 -> "
            f"{run.path / 'checked.csv'}"
        )
    assert len(read_rows(run.path / "checked.csv")) == 24


def test_files_from_elsewhere(run: RunFolder, tmp_path: Path) -> None:
    inputs = tmp_path / "inputs.npy"
    np.save(inputs, load_file(run.inputs_file)["inputs"].numpy())
    model = tmp_path / "model"
    run.model_file.rename(model)
    run.inputs_file.unlink()
    assert check_files(run.certificates_file, model, inputs)[1]


def test_the_model_may_lie_in_the_folder_around(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = RunFolder(run.path / "certified-new")
    inner.path.mkdir()
    for file in (run.certificates_file, run.certificate_facts_file, run.inputs_file):
        file.rename(inner.path / file.name)
    assert check_files(inner.path)[1]
    monkeypatch.chdir(inner.path)
    assert check_files(Path("certificates.csv"))[1]


def test_rows_that_fail_are_named(run: RunFolder) -> None:
    rows = read_rows(run.certificates_file)
    for row in rows[2:]:
        row["radius"] = "7.0"
    write_rows(run.certificates_file, rows)
    message, confirmed = check_files(run.path)
    lines = message.splitlines()
    assert not confirmed
    assert len(lines) == SHOWN + 1
    assert lines[0].startswith("check: NOT CONFIRMED row 2: radius 7.0, proved ")
    assert lines[-1].startswith("check: 2 certificates confirmed, 22 not, 0 claim nothing")


def test_a_row_that_claims_nothing_and_fails_is_counted_once(run: RunFolder) -> None:
    rows = read_rows(run.certificates_file)
    for row in rows[:2]:
        row["radius"] = "0.0"
    rows[0]["margin"] = "nan"
    write_rows(run.certificates_file, rows)
    message, _ = check_files(run.path)
    assert "check: 22 certificates confirmed, 1 not, 1 claim nothing" in message


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("certificates.csv", "certify {}"),
        ("certificates.json", "certify {}"),
        ("inputs.safetensors", "certify {} --inputs"),
    ],
)
def test_a_missing_file_names_the_command(run: RunFolder, name: str, command: str) -> None:
    (run.path / name).unlink()
    message = f"{name} does not exist; run `unitmargin {command.format(run.path)}` first"
    with pytest.raises(FileNotFoundError, match=message):
        check_files(run.path)


def test_what_is_no_table_and_no_model_is_named(run: RunFolder) -> None:
    with pytest.raises(ValueError, match=r"a folder or a \.csv file, got "):
        check_files(run.model_file)
    with pytest.raises(FileNotFoundError, match=f"{run.path} is a folder; check the path"):
        check_files(run.path, run.path)


def test_a_missing_model_is_frozen_of_a_run_and_passed_elsewhere(run: RunFolder) -> None:
    """Certificates that an exported file issued lie in a folder that freeze makes nothing of."""
    run.model_file.unlink()
    words = r"model.safetensors does not exist; pass --model with .* certificates.json names"
    with pytest.raises(FileNotFoundError, match=words):
        check_files(run.path)
    (run.path / "weights.safetensors").touch()
    with pytest.raises(FileNotFoundError, match=f"run `unitmargin freeze {run.path}` first"):
        check_files(run.path)


def test_an_exported_file_in_a_run_makes_no_exported_folder(run: RunFolder) -> None:
    (run.path / "inputs.safetensors").unlink()
    (run.path / "model.onnx").touch()
    with pytest.raises(FileNotFoundError, match="an exported folder holds no inputs"):
        check_files(run.path)
    (run.path / "weights.safetensors").touch()
    with pytest.raises(FileNotFoundError, match=f"certify {run.path} --inputs"):
        check_files(run.path)


def test_a_folder_that_can_only_be_read_gets_its_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    torch.manual_seed(0)
    run = certified(tmp_path, EXAMPLES["pooled"]())
    monkeypatch.setattr("unitmargin.steps.check.write", refuse)
    message, passed = check_files(run.path)
    assert passed
    assert message.endswith(f"({run.path / 'checked.csv'} could not be written: Permission denied)")
