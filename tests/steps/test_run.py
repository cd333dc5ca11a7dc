"""The whole walk: every verb in order, and whether a promise was broken."""

from pathlib import Path

import pytest

from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import Recipe
from unitmargin.steps import run as step


@pytest.mark.parametrize("passed", [True, False])
def test_all_verbs_are_taken_whatever_verify_says(
    passed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("train", "freeze", "certify", "report"):
        monkeypatch.setattr(step, f"{name}_run", lambda *_, n=name: n)
    monkeypatch.setattr(step, "verify_run", lambda *_: ("verify", passed))
    assert step.run_recipe(Recipe(name="a"), RunFolder(tmp_path)) is passed
    assert capsys.readouterr().out.split() == ["train", "freeze", "certify", "verify", "report"]
