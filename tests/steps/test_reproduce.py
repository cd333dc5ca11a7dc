"""The reproduce step: two files, from named folders or from all verified ones."""

from pathlib import Path

import pytest

from unitmargin.runs import RunFolder
from unitmargin.steps.reproduce import reproduce, verified_folders


def test_both_files_hold_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    message = reproduce("tightness", (), tmp_path / "out")
    assert message.startswith("reproduce: tightness from 0 runs -> ")
    markdown = (tmp_path / "out/tightness.md").read_text()
    latex = (tmp_path / "out/tightness.tex").read_text()
    for label in ("tab:dist-table", "tab:further-map"):
        assert f"## {label}" in markdown
        assert rf"\label{{{label}}}" in latex
    assert markdown.count("not run") == latex.count("not run") == 14 + 36
    assert "UGNN+MaxMin+updB | norm | no | 0.96 ± 0.044 | 7327" in markdown


def test_an_unknown_target_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="target must be one of tightness, got 'speed'"):
        reproduce("speed", (), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_only_verified_folders_are_taken(tmp_path: Path) -> None:
    for name in ("b", "a", "trained"):
        (tmp_path / name).mkdir()
    for name in ("b", "a"):
        RunFolder(tmp_path / name).solvers_file.touch()
    assert [folder.path.name for folder in verified_folders(tmp_path)] == ["a", "b"]
