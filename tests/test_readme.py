"""Every code block of README and guide runs, and the commands they show exist."""

import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from PIL import Image

from unitmargin.cli import main
from unitmargin.runs.recipe import read_recipe

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/guide.md")
INSTALLING = ("make demo",)
"""Shown commands that create an environment: their target is looked up, not run."""
NEEDS_DATA = "unitmargin run cifar10-fast --data IMAGES"
"""Needs the CIFAR-10 images: only its arguments are parsed."""


def blocks(language: str) -> list[tuple[str, str]]:
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [(page, code) for page in PAGES for code in pattern.findall((ROOT / page).read_text())]


@pytest.mark.parametrize(("page", "code"), blocks("python"))
def test_python_blocks_run(
    page: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, page, "exec"), {"__name__": "block"})


def test_the_readme_example_is_twelve_lines() -> None:
    (code,) = [code for page, code in blocks("python") if page == "README.md"]
    assert len([line for line in code.splitlines() if line.strip()]) <= 13


def test_toml_blocks_are_recipes(tmp_path: Path) -> None:
    for page, code in blocks("toml"):
        file = tmp_path / "recipe.toml"
        file.write_text(code)
        assert read_recipe(file).name, page


def test_shell_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    Image.new("L", (8, 8), 99).save("photos/new.png")
    rows = (f"{20 + row},{('red', 'blue')[row % 2]},{row // 15}" for row in range(30))
    (tmp_path / "patients.csv").write_text("\n".join(["age,colour,class", *rows]))
    lines = [line for _, code in blocks("bash") for line in code.splitlines() if line.strip()]
    assert NEEDS_DATA in lines
    for line in lines:
        if line in INSTALLING:
            assert re.search(rf"^{line.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
            continue
        line, _, redirected = line.partition(" > ")
        program, *arguments = shlex.split(line, comments=True)
        assert program == "unitmargin", line
        out = io.StringIO()
        with redirect_stdout(out), pytest.raises(SystemExit) as status:
            main(arguments)
        if redirected:
            (tmp_path / redirected.split()[0]).write_text(out.getvalue())
        assert status.value.code == (2 if line == NEEDS_DATA else 0), line
    assert (tmp_path / "runs/walk/report.html").is_file()


def test_linked_files_exist() -> None:
    for page in (*PAGES, "CONTRIBUTING.md", "docs/theory.md", "docs/architecture.md"):
        text = (ROOT / page).read_text()
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if not target.startswith("http"):
                assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_the_tree_of_the_readme_is_the_tree() -> None:
    tree = (ROOT / "README.md").read_text().split("## The tree")[1]
    named = re.findall(r"^  (\w+(?:\.py|/))", tree, re.MULTILINE)
    assert named
    for name in named:
        assert (ROOT / "src/unitmargin" / name).exists(), name
