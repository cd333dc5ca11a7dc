"""The recipes that ship: found by name and listed."""

from pathlib import Path

import pytest

from unitmargin.runs.shipped import embedded_recipe, list_recipes

FOLDER = Path(__file__).parents[2] / "recipes"


def test_embedded_recipes_are_found_by_name(tmp_path: Path) -> None:
    named = sorted(FOLDER.glob("*.toml"))
    assert named
    for file in named:
        assert embedded_recipe(file.stem).read_text() == file.read_text()
    own = tmp_path / "own.toml"
    own.write_text('name = "own"')
    assert embedded_recipe(own) == own
    known = ", ".join(sorted(file.stem for file in named))
    with pytest.raises(
        FileNotFoundError, match=f"no recipe nothing; pass a file, or one of {known}"
    ):
        embedded_recipe("nothing")
    with pytest.raises(FileNotFoundError):
        embedded_recipe("elsewhere/digits")


def test_every_recipe_is_listed_with_its_first_line() -> None:
    lines = dict(line.split(maxsplit=1) for line in list_recipes())
    files = {file.relative_to(FOLDER).with_suffix("").as_posix() for file in FOLDER.rglob("*.toml")}
    assert set(lines) == files
    for name, about in lines.items():
        assert embedded_recipe(name).read_text().splitlines()[0] == f"# {about}"
    assert [name for name in lines if "/" in name] == sorted(files)[-sum("/" in n for n in files) :]
