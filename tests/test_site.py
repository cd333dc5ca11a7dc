"""What the site makes of docstrings: sections become fields, and what they cite exists."""

import inspect
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import unitmargin as um

ROOT = Path(__file__).parents[1]

KNOWN = {"Args", "Attributes", "Example", "Raises", "Returns"}
"""Sections in a list, of which napoleon makes fields."""


def _docstrings() -> Any:
    spec = spec_from_file_location("docstrings", ROOT / "docs/_extensions/docstrings.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


docstrings = _docstrings()


def test_a_section_in_a_sentence_becomes_a_field_with_all_of_its_lines() -> None:
    lines = ["Sentence.", "Shapes: one", "two.", "Cost: three.", "", "Next."]
    fields = ["Sentence.", "", ":Shapes: one", "    two.", ":Cost: three.", "", "Next."]
    assert docstrings.as_fields(lines) == fields


def test_arguments_of_which_only_some_are_listed_stay_a_list() -> None:
    lines = ["Args (the others: those):", "    depth: of it."]
    assert docstrings.as_fields(lines) == [
        ":Arguments: the others: those", "", "Args:", "    depth: of it.",
    ]  # fmt: skip


def test_cited_equations_and_pages_become_links() -> None:
    text = "(14) and (24) of docs/soundness.md; (3) is none."
    assert docstrings.with_links(text) == (
        ":ref:`(14) <equation-soundness-14>` and :ref:`(24) <equation-soundness-24>` of "
        ":doc:`docs/soundness.md </soundness>`; (3) is none."
    )


def test_every_section_of_a_public_docstring_is_known() -> None:
    for name in um.__all__:
        lines = docstrings.as_fields((inspect.getdoc(getattr(um, name)) or "").split("\n"))
        left = {found[1] for line in lines if (found := re.match(r"([A-Z]\w*):(?: |$)", line))}
        assert left <= KNOWN, name


def test_equations_that_the_code_cites_exist() -> None:
    pages = {page.stem: page.read_text() for page in (ROOT / "docs").glob("*.md")}
    cited = []
    for file in (ROOT / "src").rglob("*.py"):
        text = " ".join(file.read_text().split())
        cited += [(file.name, *found) for found in docstrings.CITED.findall(text)]
        behind = docstrings.CITED_BEHIND.findall(text)
        cited += [(file.name, number, page) for _, page, number in behind]
    assert len(cited) >= 5
    for file, number, page in cited:
        shown = rf"(\\tag{{{number}}}| \({number}[,)].*)$"
        assert re.search(shown, pages[page], re.MULTILINE), f"{file}: ({number}) of {page}"
