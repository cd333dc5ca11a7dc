"""Verbs as functions: they find and write what the commands do."""

import json
from pathlib import Path

import pytest
from tables import read_rows, write_rows

import unitmargin as um
from unitmargin.cli import main
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.train import train_run
from unitmargin.training.options import TrainingOptions

TINY = Recipe(
    name="tiny",
    data=DataOptions(name="digits", limit=60),
    model=ModelOptions(name="dense_ugnn", options={"hidden": [12]}),
    training=TrainingOptions(epochs=1, batch_size=32),
)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    train_run(TINY, folder)
    freeze_run(folder)
    certify_run(folder)
    return folder


def test_they_find_and_write_what_the_commands_do(run: RunFolder) -> None:
    found = um.verify(run.path, ["ddn:steps=5"], samples=3, box="off", data=None)
    assert found.passed
    assert found.samples == 3
    assert [row["solver"] for row in found.solvers] == ["ddn"]
    assert found.model_dump() == json.loads(run.checks_file.read_text())
    page = um.report(str(run.path))
    assert page == run.report_html
    written = page.read_text()
    for arguments in ("verify", "report"):
        more = ["--solvers", "ddn:steps=5", "--samples", "3", "--box", "off"]
        with pytest.raises(SystemExit) as status:
            main([arguments, str(run.path), *(more if arguments == "verify" else [])])
        assert status.value.code == 0
    assert um.report(run.path).read_text() == written
    assert run.findings().checks == found.checks


def test_a_broken_promise_is_a_result(run: RunFolder) -> None:
    rows = read_rows(run.certificates_file)
    for row in rows:
        row["radius"] = str(2 * float(row["radius"]))
    write_rows(run.certificates_file, rows)
    found = um.verify(run.path, samples=3, box="off")
    assert not found.passed
    assert any(row.failed for row in found.checks)


def test_a_folder_of_nothing_names_the_first_step(tmp_path: Path) -> None:
    for call in (um.verify, um.report):
        with pytest.raises(RunError, match="does not exist; run"):
            call(tmp_path)
