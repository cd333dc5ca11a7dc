"""What the site makes of docstrings and commands: all are there, and what they cite exists."""

import inspect
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import unitmargin as um
from unitmargin.auditing.finding import Finding
from unitmargin.data import TableOptions
from unitmargin.solvers import SOLVERS
from unitmargin.verbs import VERBS

ROOT = Path(__file__).parents[1]

KNOWN = {"Args", "Attributes", "Example", "Raises", "Returns"}
"""Sections in a list, of which napoleon makes fields."""


def _extension(name: str) -> Any:
    spec = spec_from_file_location(name, ROOT / f"docs/_extensions/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


docstrings, commands, signatures = map(_extension, ("docstrings", "commands", "signatures"))


def test_a_section_in_a_sentence_becomes_a_field_with_all_of_its_lines() -> None:
    lines = ["Sentence.", "Shapes: one", "two.", "Cost: three.", "", "Next."]
    fields = ["Sentence.", "", ":Shapes: one", "    two.", ":Cost: three.", "", "Next."]
    assert docstrings.as_fields(lines) == fields


def test_arguments_of_which_only_some_are_listed_stay_a_list() -> None:
    lines = ["Args (the others: those):", "    depth: of it."]
    assert docstrings.as_fields(lines) == [
        ":Arguments: the others: those", "", "Args:", "    depth: of it.",
    ]  # fmt: skip


def test_attributes_that_are_described_together_are_listed_apart() -> None:
    lines = [":ivar name, kind: first", "    and more.", ":ivar largest: last.", ""]
    assert docstrings.apart(lines) == [
        ":ivar name: first", "    and more.", ":ivar kind: first", "    and more.",
        ":ivar largest: last.", "",
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


def test_the_page_of_solvers_has_those_that_are_registered() -> None:
    page = (ROOT / "docs/api/solvers.rst").read_text()
    assert re.findall(r"^   \* - ``(\w+)``$", page, re.MULTILINE) == list(SOLVERS)
    own = [one.func if isinstance(one, partial) else one for one in SOLVERS.values()]
    documented = re.findall(r"^\.\. autofunction:: (unitmargin\.solvers\.\w+\.\w+)$", page, re.M)
    assert documented == list(dict.fromkeys(f"{one.__module__}.{one.__name__}" for one in own))


def test_a_solver_is_shown_with_its_options_alone() -> None:
    name = "unitmargin.solvers.fmn.fmn"
    kind = "~unitmargin.solvers.problem.Problem"

    def shown(name: str, signature: str) -> Any:
        return signatures.process(None, "function", name, None, None, signature, "None")

    assert shown(name, f"(problem: {kind}, *, steps: int = 100)") == ("(steps: int = 100)", "")
    assert shown(name, f"(problem: {kind})") == ("()", "")
    assert shown("unitmargin.solvers.best_of", "(*results: MapResult)") is None
    assert shown("unitmargin.certify", "(problem: int, *, x: int)") is None


def test_options_are_shown_with_types_and_defaults_alone() -> None:
    assert signatures.without_rules(TableOptions) == (
        "(*, test_share: float | None = None, split_seed: int | None = None, "
        "label: str | None = None, test: str | None = None, scale: str = 'none', "
        "units: dict[str, float] = {}, categories: list[str] = [], ignore: list[str] = [])"
    )
    assert signatures.without_rules(Finding).startswith("(*, name: str, passed: bool | None, value")


def test_what_the_api_takes_and_returns_is_on_its_pages() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs/api").glob("*.rst"))
    shown = set(re.findall(r"^\.\. autoclass:: unitmargin\.[\w.]*?(\w+)$", pages, re.MULTILINE))
    for name in ("load_dataset", "train", "audit", "verify", "minimal_perturbation", "certify"):
        returned = inspect.signature(getattr(um, name)).return_annotation
        assert returned.__name__ in shown, name
    assert {"Samples", "EpochRecord", "Finding", "TableOptions", "TrainingOptions"} <= shown


def test_the_reference_of_commands_has_every_verb_with_its_arguments() -> None:
    _, *sections = re.split(r"^## (\w+)\n", commands.reference(), flags=re.MULTILINE)
    assert sections[::2] == [verb.__name__ for verb in VERBS]
    for verb, text in zip(VERBS, sections[1::2], strict=True):
        options, positional = _arguments(verb)
        defined = re.findall(r"^`(.+)`\n: \S", text, re.MULTILINE)
        assert len(defined) == len(options) + positional, verb.__name__
        named = {re.split(r"[ ,]", one)[0] for one in defined if one.startswith("-")}
        assert named == options, verb.__name__


def _arguments(verb: Any) -> tuple[set[str], int]:
    """Options and the number of other arguments, as the signature of a verb has them."""
    found: list[tuple[str, Any]] = []
    for name, parameter in inspect.signature(verb).parameters.items():
        kind = parameter.annotation
        inner = getattr(kind, "__origin__", kind)
        if is_dataclass(inner):
            found += [(field.name, field.type) for field in fields(inner)]
        else:
            found.append((name, kind))
    renamed = {"settings": "set"}
    options = {f"--{renamed.get(n, n).replace('_', '-')}" for n, kind in found if not _bare(kind)}
    return options, sum(_bare(kind) for _, kind in found)


def _bare(kind: Any) -> bool:
    return any("Positional" in repr(mark) for mark in getattr(kind, "__metadata__", ()))


def test_an_argument_is_shown_as_help_says_it() -> None:
    assert commands.section("demo") == (
        "## demo\n\nRun the embedded digits recipe from data to report.\n\n"
        "```text\nunitmargin demo [-h] [--out PATH]\n```\n\n"
        "`--out PATH`\n: run folder. (default: `runs/digits`)"
    )
    text = commands.section("predict")
    assert "\n: a folder or archive of images" in text
    assert ".parquet (of images, or of a table). (required)" in text
    assert "`--profile STR`\n: float64 or float32; default: the model's own.\n" in text


def test_the_reference_takes_the_place_of_a_line_of_its_page() -> None:
    source = [(ROOT / "docs/commands.md").read_text()]
    commands.write_reference(None, "guide", source)
    assert commands.PLACE in source[0]
    commands.write_reference(None, "commands", source)
    assert source[0].endswith(commands.reference() + "\n")
    assert "<!--" not in source[0]


def test_no_help_imports_torch() -> None:
    code = (
        f"import sys\nsys.path.append({str(ROOT / 'docs/_extensions')!r})\nimport commands\n"
        "commands.reference()\nprint({'torch', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_exit_statuses_are_those_of_the_readme() -> None:
    rows = re.findall(r"^\| \d+ \|.*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == 6
    assert re.findall(r"^\| \d+ \|.*$", (ROOT / "docs/commands.md").read_text(), re.M) == rows


def test_how_to_cite_is_said_as_the_file_says_it() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    index = " ".join((ROOT / "docs/index.md").read_text().split())
    (paper,) = re.findall(r"^    title: (.*)$", citation, re.MULTILINE)
    (number,) = re.findall(r"^ +value: (arXiv:.*)$", citation, re.MULTILINE)
    for said in (f"*{paper}*", number, "(../CITATION.cff)"):
        assert said in index
    assert "(CITATION.cff)" in (ROOT / "README.md").read_text()
