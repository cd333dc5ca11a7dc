"""Scripts: modules of one idea each, joined to one text that needs nothing else."""

import re
from pathlib import Path

import pytest

import unitmargin
from unitmargin.exploring.scripts import EXPORT, IMPORT, bundle

SCRIPTS = Path(str(unitmargin.__file__)).parent / "exploring/scripts"

FILES = sorted(SCRIPTS.rglob("*.js"))

ENTRIES = ("worker/main.js", "page/main.js")

MOST_LINES = 300


def names_in(text: str) -> list[str]:
    return re.findall(r'^modules\["([^"]+)"\] = ', text, re.MULTILINE)


@pytest.mark.parametrize("entry", ENTRIES)
def test_each_module_comes_once_and_behind_what_it_needs(entry: str) -> None:
    text = bundle(entry)
    names = names_in(text)
    assert len(set(names)) == len(names) > 5
    assert names[-1] == entry
    for found in re.finditer(r'^const \{[^}]*\} = modules\["([^"]+)"\];$', text, re.MULTILINE):
        assert text.index(f'modules["{found[1]}"] = ') < found.start()
    assert not re.search(r"^(import|export)\b", text, re.MULTILINE)


def test_no_script_is_left_out() -> None:
    used = {name for entry in ENTRIES for name in names_in(bundle(entry))}
    assert used == {file.relative_to(SCRIPTS).as_posix() for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(SCRIPTS).as_posix())
def test_a_module_is_one_idea_that_it_states(file: Path) -> None:
    """It takes what others export, by name, uses all of it, and refers to no other address."""
    text = file.read_text()
    assert text.startswith("/**")
    assert text.count("\n") < MOST_LINES
    assert len(re.findall(r"^import\b", text, re.MULTILINE)) == len(IMPORT.findall(text))
    assert len(re.findall(r"^export\b", text, re.MULTILINE)) == len(EXPORT.findall(text))
    for taken, path in IMPORT.findall(text):
        offered = EXPORT.findall((file.parent / path).read_text())
        for name in re.findall(r"\w+", taken):
            assert name in offered
            assert len(re.findall(rf"\b{name}\b", text)) > 1
    assert not re.search(r"https?:|\bfetch\(|XMLHttpRequest|\beval\(|new Function", text)
