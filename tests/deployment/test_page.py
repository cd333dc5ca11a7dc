"""The code of the page about deployment runs; that of its section on guards does in tests/guard."""

import io
import re
import shlex
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import torch

import unitmargin as um
from unitmargin.cli import main

PAGE = (Path(__file__).parents[2] / "docs/deployment.md").read_text()


def blocks(language: str, text: str = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


EXPORT, COMPILE = blocks("python", PAGE.split("\n## torch.export and AOTInductor\n")[1])


def exported() -> dict[str, object]:
    """The names of the block that exports, in a folder that holds a model file."""
    network = um.DenseUGNN((4,), 3, hidden=(4,))
    um.save(um.freeze(network, domain=(0.0, 1.0)), "model.safetensors")
    names: dict[str, object] = {}
    exec(compile(EXPORT, "docs/deployment.md", "exec"), names)
    return names


def test_the_exported_graph_gives_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    claims = exported()["claims"]
    assert isinstance(claims, dict)
    assert claims["radius"].shape == (7,)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:.*treespec:FutureWarning")
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler is installed")
def test_the_compiled_package_gives_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = exported()
    exec(compile(COMPILE, "docs/deployment.md", "exec"), {"torch": torch} | names, names)
    graph = names["graph"]
    assert callable(graph)
    assert graph(torch.rand(3, 4))["radius"].shape == (3,)


def test_shell_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = (f"{20 + row},{('north', 'south')[row % 2]},{row // 15}" for row in range(30))
    (tmp_path / "patients.csv").write_text("\n".join(["age,ward,kind", *rows]))
    before = ["train digits --epochs 1", "freeze runs/digits", "certify runs/digits"]
    lines = [f"unitmargin {line}" for line in before]
    lines += [line for code in blocks("bash") for line in code.splitlines() if line.strip()]
    assert len(lines) == 10
    for line in lines:
        line, _, redirected = line.partition(" > ")
        _, *arguments = shlex.split(line, comments=True)
        out = io.StringIO()
        with redirect_stdout(out), pytest.raises(SystemExit) as status:
            main(arguments)
        if redirected:
            (tmp_path / redirected).write_text(out.getvalue())
        assert status.value.code == 0, line
    assert (tmp_path / "ward.onnx").is_file()
    assert (tmp_path / "digits/README.md").is_file()
