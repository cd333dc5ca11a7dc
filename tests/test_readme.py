"""Every code block of the README and of the pages runs, and the commands they show exist."""

import io
import re
import shlex
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from PIL import Image

import unitmargin as um
from unitmargin.cli import main
from unitmargin.runs.recipe import read_recipe

ROOT = Path(__file__).parents[1]
WITH_CODE = (
    "README.md", "docs/index.md", "docs/guide.md", "docs/choosing.md", "docs/estimator.md",
    "docs/scale.md",
)  # fmt: skip
PAGES = (*WITH_CODE, "docs/your-images.md", "docs/your-tables.md", "docs/explore.md")
"""Pages whose blocks run here; those of deployment and monitoring do in tests/deployment and
tests/guard."""
DOCS = sorted((ROOT / "docs").glob("*.md"))
INSTALLING = (
    "pip install torch --index-url https://download.pytorch.org/whl/cpu",
    "pip install unitmargin",
)
"""Shown commands that change the environment: they are not run."""
NEEDS_DATA = "unitmargin run cifar10-fast --data IMAGES"
"""Needs the CIFAR-10 images: only its arguments are parsed."""


def blocks(language: str) -> list[tuple[str, str]]:
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [(page, code) for page in PAGES for code in pattern.findall((ROOT / page).read_text())]


@pytest.mark.parametrize("page", WITH_CODE)
def test_python_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one namespace, in a folder in which a network has been exported."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shipped").mkdir()
    network = um.freeze(um.DenseUGNN(in_shape=(1, 8, 8), n_classes=10), domain=(0.0, 1.0))
    um.export_onnx(network, "shipped/model.onnx")
    found = [code for place, code in blocks("python") if place == page]
    assert found
    names: dict[str, object] = {"__name__": "block"}
    for code in found:
        exec(compile(code, page, "exec"), names)


def test_the_readme_examples_are_twelve_and_five_lines() -> None:
    codes = [code for page, code in blocks("python") if page == "README.md"]
    lines = [[line for line in code.splitlines() if line.strip()] for code in codes]
    assert [len(one) <= most for one, most in zip(lines, (13, 5), strict=True)] == [True, True]


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
    (tmp_path / "patients.csv").write_text("\n".join(["age,colour,kind", *rows]))
    lines = [line for _, code in blocks("bash") for line in code.splitlines() if line.strip()]
    assert NEEDS_DATA in lines
    for line in lines:
        if line in INSTALLING:
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


def test_extras_that_are_named_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("src/**/*.py")]
    named = {n for page in pages for n in re.findall(r"unitmargin\[(\w+)\]", page.read_text())}
    assert named
    assert named <= set(extras)


def test_the_page_of_the_package_index_links_to_no_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    page = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)]*)\)", page)
    for rule in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(rule["pattern"], rule["replacement"], page)
    left = re.findall(r"\]\(([^)]*)\)", page)
    assert left == [link for link in links if link.startswith("https:")] != links


def test_linked_files_exist() -> None:
    for page in (*PAGES, "CONTRIBUTING.md", *(f"docs/{page.name}" for page in DOCS)):
        text = (ROOT / page).read_text()
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if not target.startswith("http"):
                assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_python_blocks_are_those_of_pages_that_are_run() -> None:
    run = {*WITH_CODE, "docs/deployment.md", "docs/monitoring.md"}
    found = {f"docs/{page.name}" for page in DOCS if "\n```python\n" in page.read_text()}
    assert found == run - {"README.md"}


def test_every_page_is_named_in_the_index() -> None:
    index = (ROOT / "docs/index.md").read_text()
    linked = set(re.findall(r"\]\(([\w-]+\.md)", index))
    assert linked == {page.name for page in DOCS} - {"index.md"}


def test_every_public_name_has_its_place_in_the_api_pages() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs/api").glob("*.rst"))
    named = re.findall(r"^\.\. auto\w+:: unitmargin\.(\w+)$", pages, re.MULTILINE)
    assert sorted(named) == sorted(um.__all__)


def test_every_recipe_stands_in_the_zoo() -> None:
    zoo = (ROOT / "docs/zoo.md").read_text()
    for recipe in (ROOT / "recipes").glob("*.toml"):
        assert f"`{recipe.stem}`" in zoo
    assert f"{len(list((ROOT / 'recipes/paper').glob('*.toml')))} recipes" in zoo


def test_the_tree_of_the_readme_is_the_tree() -> None:
    tree = (ROOT / "README.md").read_text().split("## The tree")[1]
    named = re.findall(r"^  (\w+(?:\.py|/))", tree, re.MULTILINE)
    assert named
    for name in named:
        assert (ROOT / "src/unitmargin" / name).exists(), name
