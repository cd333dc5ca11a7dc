"""checks.json: strict JSON that returns, and what is damaged or foreign is refused."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from unitmargin.auditing.finding import Finding, at_most, not_run
from unitmargin.foundation.files import file_sha256, read_json
from unitmargin.runs.findings import Findings
from unitmargin.runs.folder import RunError, RunFolder


def found(model: Path) -> Findings:
    return Findings(
        passed=False,
        samples=7,
        hardware="a machine",
        torch="2",
        commit="",
        model_sha256=file_sha256(model),
        checks=[
            at_most("orthogonality", 1e-9, 1e-5),
            at_most("upd", math.inf, 1e-5),
            not_run("unit_gradient", "not promised"),
            Finding(name="rounding_attack", passed=True, value=0, bound=0.0),
        ],
        solvers=[{"solver": "fmn", "box": "[0, 1]", "mean": None}],
    )


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    run = RunFolder(tmp_path)
    run.model_file.write_bytes(b"a model")
    found(run.model_file).write(run.checks_file)
    return run


def test_the_file_is_strict_json_and_returns(folder: RunFolder) -> None:
    assert folder.findings() == found(folder.model_file)
    assert read_json(folder.checks_file)["checks"][1]["value"] is None
    assert folder.findings().value("orthogonality") == 1e-9
    assert folder.findings().value("unit_gradient") is None


def test_what_is_read_is_left_as_it_was(folder: RunFolder) -> None:
    content = json.loads(folder.checks_file.read_text())
    content["solvers"][0]["box"] = "[0; 1]"
    assert (
        Findings(**content).solvers
        == content["solvers"]
        == [{"solver": "fmn", "box": "[0; 1]", "mean": None}]
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"samples": 0}, "samples must be greater than 0, got 0"),
        ({"samples": "7"}, "samples must be a valid integer, got '7'"),
        ({"colour": 1}, "colour is no option"),
        ({"passed": True}, "checks must .* got passed = True"),
        ({"checks": []}, "checks must hold orthogonality, .* none named"),
        ({"checks": [3]}, "checks.0 must be"),
        ({"checks": [{"name": "upd"}]}, "passed must be given, got nothing"),
        ({"model_sha256": "0"}, "model_sha256 must be .* that of model.safetensors, got 0"),
    ],
)
def test_what_does_not_fit_is_refused(
    change: dict[str, Any], message: str, folder: RunFolder
) -> None:
    content = json.loads(folder.checks_file.read_text())
    folder.checks_file.write_text(json.dumps(content | change))
    with pytest.raises(RunError, match=f"{message}.*run `unitmargin verify {folder.path}` again"):
        folder.findings()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"samples": Infinity}'])
def test_damaged_files_are_refused(text: str, folder: RunFolder) -> None:
    folder.checks_file.write_text(text)
    with pytest.raises(RunError, match=f"run `unitmargin verify {folder.path}` again"):
        folder.findings()
