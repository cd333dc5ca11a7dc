"""What the docstrings of this library have beside the sections that napoleon knows.

``Shapes: ...``, ``Guarantee: ...`` and the like become fields, as arguments and errors are,
attributes that are described together are listed apart, and the pages and equations of ``docs/``
that a docstring cites become links.
"""

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SECTION = re.compile(r"^(\s*)(Args|Shapes|Guarantee|Needs|Metadata|Cost|Source): +(.*)$")

FIELDS = {"Args": "Arguments"}
"""Names of fields that are not those of sections: ``Args`` in a sentence is no list."""

OTHERS = re.compile(r"^(\s*)Args \((.*)\):$")
"""Arguments of which only some are listed."""

TOGETHER = re.compile(r":ivar (\w+(?:, \w+)+): (.*)$")
"""What napoleon makes of a line for several attributes; Sphinx takes the first for a type."""

PAGE = re.compile(r"(?<![\w/`])docs/(\w+)\.md")

CITED = re.compile(r"\((C?\d+'?)\)(?=(?:(?:,| and) \(C?\d+'?\))* of docs/(\w+)\.md)")

CITED_BEHIND = re.compile(r"(docs/(\w+)\.md, equation )\((C?\d+'?)\)")


def as_fields(lines: list[str]) -> list[str]:
    """Each section a field of its own, its further lines indented, with a blank line before it."""
    made: list[str] = []
    inside = ""
    for line in lines:
        if others := OTHERS.match(line):
            made += [f"{others[1]}:Arguments: {others[2]}", "", f"{others[1]}Args:"]
            continue
        found = SECTION.match(line)
        if found:
            indent, name, text = found.groups()
            if made and made[-1].strip() and not inside:
                made.append("")
            made.append(f"{indent}:{FIELDS.get(name, name)}: {text}")
            inside = f"{indent}    "
        elif not line.strip():
            inside = ""
            made.append(line)
        else:
            made.append(inside + line.lstrip() if inside else line)
    return made


def apart(lines: list[str]) -> list[str]:
    """The fields of a docstring, each attribute one of its own, as napoleon has arguments."""
    made: list[str] = []
    left = list(lines)
    while left:
        line = left.pop(0)
        found = TOGETHER.match(line)
        if found is None:
            made.append(line)
            continue
        further = list(takewhile(lambda next: next.startswith(" "), left))
        del left[: len(further)]
        for name in found[1].split(", "):
            made += [f":ivar {name}: {found[2]}", *further]
    return made


def with_links(text: str) -> str:
    """Pages and equations that are named become links to them."""
    text = CITED.sub(r":ref:`(\1) <equation-\2-\1>`", text)
    text = CITED_BEHIND.sub(r"\1:ref:`(\3) <equation-\2-\3>`", text)
    return PAGE.sub(r":doc:`docs/\1.md </\1>`", text)


def process(app: "Sphinx", what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = with_links("\n".join(as_fields(lines))).split("\n")


def finish(app: "Sphinx", what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = apart(lines)


def setup(app: "Sphinx") -> dict[str, bool]:
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", process, priority=400)  # before napoleon, at 500
    app.connect("autodoc-process-docstring", finish, priority=600)
    return {"parallel_read_safe": True}
