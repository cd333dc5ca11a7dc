"""Rooms of the package: what the root holds, and what each room offers to the others."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import unitmargin

ROOT = Path(str(unitmargin.__file__)).parent

ROOMS = {
    "auditing", "certificates", "checker", "data", "deployment", "estimators", "exploring",
    "foundation", "frozen", "guard", "heads", "layers", "models", "orthogonal", "paper",
    "reporting", "runs", "solvers", "steps", "training",
}  # fmt: skip

OPEN = {"steps"}
"""Verbs are taken by file: importing one must not import the others."""


def test_the_root_holds_rooms_and_the_command_line_alone() -> None:
    modules = {"__init__.py", "__main__.py", "arguments.py", "cli.py", "verbs.py"}
    files = modules | {"__init__.pyi", "py.typed"}
    assert {path.name for path in ROOT.iterdir()} - {"__pycache__", "recipes"} == files | ROOMS


def imports(file: Path) -> list[tuple[str, str]]:
    """Room and name of everything that a file takes from other rooms."""
    own = file.relative_to(ROOT).parts[0]
    taken = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("unitmargin."):
            _, room, *inner = str(node.module).split(".")
            names = inner[:1] or [alias.name for alias in node.names]
            taken += [(room, name) for name in names if room != own]
    return taken


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda f: str(f.relative_to(ROOT)))
def test_a_room_takes_from_others_what_they_offer(file: Path) -> None:
    for room, name in imports(file):
        if room in ROOMS - OPEN:
            assert name in import_module(f"unitmargin.{room}").__all__, f"{room}.{name}"


@pytest.mark.parametrize("room", sorted(ROOMS - OPEN))
def test_a_room_offers_what_it_has(room: str) -> None:
    module = import_module(f"unitmargin.{room}")
    for name in module.__all__:
        assert hasattr(module, name) or import_module(f"unitmargin.{room}.{name}")
    assert len(set(module.__all__)) == len(module.__all__)
