"""The code of the pages about guards runs, and their table is that of the outcomes."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from onnx_files import write_linear

from unitmargin.guard import OUTCOMES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "deployment.md").read_text()
MONITORING = (DOCS / "monitoring.md").read_text()
WARDS = ["north", "south"]
SECTION = PAGE.split("\n## A guard\n")[1].split("\n## ")[0]


def test_python_blocks_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    columns = [{"name": "age", "shift": 40, "unit": 20}, {"name": "ward", "categories": WARDS}]
    stated = {"encoding": json.dumps({"label": "kind", "scale": "features", "columns": columns})}
    weight = np.array([[-0.5, 0.5], [0, 0], [0, 0]])
    write_linear(tmp_path / "ward.onnx", weight, np.zeros(2), (3,), (-5.0, 5.0), stated=stated)
    code = SECTION + MONITORING
    blocks = re.findall(r"^```python\n(.*?)^```", code, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    for code in blocks:
        exec(compile(code, "docs/deployment.md", "exec"), names)
    printed = capsys.readouterr().out
    assert len(blocks) == 3
    assert printed.splitlines()[2] == "class 1 1.0499999523162842 no value for 'age'"
    assert re.search(r'^unitmargin_guard_radius_count{guard="door"} 100\.0$', printed, re.MULTILINE)


def test_the_table_lists_every_outcome() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", SECTION, re.MULTILINE)
    assert sorted(listed) == sorted(OUTCOMES)
