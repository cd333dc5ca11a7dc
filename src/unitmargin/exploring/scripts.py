"""Scripts of the page: modules, joined to one text that needs no other file."""

import re
from importlib.resources import files
from posixpath import dirname, join, normpath

ROOT = files("unitmargin.exploring") / "scripts"

IMPORT = re.compile(r'^import (\{[^}]*\}) from "([^"]+)";$', re.MULTILINE)

EXPORT = re.compile(r"^export (?=(?:class|const|function\*?) (\w+))", re.MULTILINE)


def bundle(entry: str) -> str:
    """A module and all that it imports, each once and behind what it needs, as one script.

    Each becomes a function that is called once and returns what it exports, so that names of one
    are unknown to the others. Modules import by name, and export where they declare.
    """
    order: list[str] = []
    _visit(entry, order)
    return '"use strict";\n\nconst modules = {};\n\n' + "\n\n".join(map(_wrapped, order)) + "\n"


def _wrapped(name: str) -> str:
    text = _read(name)
    exported = ", ".join(EXPORT.findall(text))
    body = EXPORT.sub("", IMPORT.sub(lambda found: _taken(name, found), text)).strip()
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();'


def _taken(name: str, found: re.Match[str]) -> str:
    return f'const {found[1]} = modules["{_resolved(name, found[2])}"];'


def _visit(name: str, order: list[str]) -> None:
    for _, path in IMPORT.findall(_read(name)):
        if (needed := _resolved(name, path)) not in order:
            _visit(needed, order)
    order.append(name)


def _resolved(name: str, path: str) -> str:
    return normpath(join(dirname(name), path))


def _read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")
