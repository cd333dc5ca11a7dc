"""Scripts of the page: modules, joined to one text that needs no other file."""

import re
from importlib.resources import files
from posixpath import dirname, join, normpath

ROOT = files("unitmargin.exploring") / "scripts"

IMPORT = re.compile(r'^import \{[^}]*\} from "([^"]+)";\n', re.MULTILINE)

EXPORT = re.compile(r"^export ", re.MULTILINE)


def bundle(entry: str) -> str:
    """A module and all that it imports, each once and behind what it needs, as one script.

    Modules import by name and export where they declare, so that without these words they share
    one scope, in which no name is declared twice.
    """
    order: list[str] = []
    _visit(entry, order)
    texts = [EXPORT.sub("", IMPORT.sub("", _read(name))).strip() for name in order]
    return '"use strict";\n\n' + "\n\n".join(texts) + "\n"


def _visit(name: str, order: list[str]) -> None:
    for path in IMPORT.findall(_read(name)):
        needed = normpath(join(dirname(name), path))
        if needed not in order:
            _visit(needed, order)
    if name not in order:
        order.append(name)


def _read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")
