"""The reference of the commands: what ``unitmargin VERB --help`` prints, as a part of a page.

The line ``PLACE`` of the page ``commands`` gives way to a section for each verb.
"""

import io
import os
import re
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING
from unittest.mock import patch

from unitmargin.cli import main
from unitmargin.verbs import VERBS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGE, PLACE = "commands", "<!-- verbs -->"

COLUMNS = "1000"
"""Of the terminal: no line of a help text is broken."""

ROW = re.compile(r"^│ (.*?) *│$", re.MULTILINE)

SAID_ELSEWHERE = re.compile(r" ?\((?:repeatable|default: (?:None)?)\)$")

DEFAULT = re.compile(r"\(default: (.+)\)$")


def help_of(verb: str) -> str:
    """What ``unitmargin VERB --help`` prints to a file, on a wide terminal."""
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # boxes are drawn in its letters
    with patch.dict(os.environ, COLUMNS=COLUMNS), redirect_stdout(printed), suppress(SystemExit):
        main([verb, "--help"])
    printed.seek(0)
    return printed.read()


def arguments(text: str) -> list[tuple[str, str]]:
    """Every argument in the boxes of a help text, as it is written, and what is said of it."""
    found: list[tuple[str, str]] = []
    for row in ROW.findall(text):
        name, _, said = row.partition("  ")
        if name:
            found.append((name, said.strip()))
        else:
            name, begun = found[-1]
            found[-1] = name, f"{begun} {said.strip()}".strip()
    return found


def definition(name: str, said: str) -> str:
    """An argument in Markdown: None as a value, and as a default, is to leave it out."""
    said = DEFAULT.sub(r"(default: `\1`)", SAID_ELSEWHERE.sub("", said))
    if not name.startswith("-"):
        said = said.removesuffix(" (required)")
    return f"`{name.replace('{None}|', '')}`\n: {said}"


def section(verb: str) -> str:
    """The help of a verb in Markdown."""
    text = help_of(verb)
    usage, purpose, *_ = text.split("\n\n")
    usage = usage.removeprefix("usage: ").replace("{None}|", "")
    own = [one for one in arguments(text) if not one[0].startswith("-h, ")]
    parts = [f"## {verb}", purpose, f"```text\n{usage}\n```", *(definition(*one) for one in own)]
    return "\n\n".join(parts)


def reference() -> str:
    """The sections of all verbs, in the order of the command line."""
    return "\n\n".join(section(verb.__name__) for verb in VERBS)


def write_reference(app: "Sphinx", page: str, source: list[str]) -> None:
    if page == PAGE:
        source[0] = source[0].replace(PLACE, reference())


def setup(app: "Sphinx") -> dict[str, bool]:
    app.connect("source-read", write_reference)
    return {"parallel_read_safe": True}
