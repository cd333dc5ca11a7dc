"""The code of the page about guards runs, and its table is that of the outcomes."""

import re
from pathlib import Path

import pytest

from unitmargin.guard import OUTCOMES

PAGE = (Path(__file__).parents[2] / "docs/deployment.md").read_text()
SECTION = PAGE.split("\n## A guard\n")[1].split("\n## ")[0]


def test_python_blocks_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    for code in blocks:
        exec(compile(code, "docs/deployment.md", "exec"), names)
    printed = capsys.readouterr().out
    assert len(blocks) == 2
    assert re.search(r'^unitmargin_guard_radius_count{guard="door"} 100\.0$', printed, re.MULTILINE)


def test_the_table_lists_every_outcome() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", SECTION, re.MULTILINE)
    assert sorted(listed) == sorted(OUTCOMES)
