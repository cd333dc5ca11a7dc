"""The checker runs where torch cannot be imported, and imports nothing of what it checks."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import torch
from claims import EXAMPLES, certified

import unitmargin.checker

FOLDER = Path(unitmargin.checker.__file__).parent

ALLOWED = {
    "collections", "csv", "decimal", "functools", "hashlib", "io", "json", "math", "numpy",
    "pathlib", "re", "typing", "uuid",
}  # fmt: skip


def test_only_numpy_and_the_standard_library_are_imported() -> None:
    for file in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [str(node.module)]
            for name in names:
                own = name == "unitmargin.checker" or name.startswith("unitmargin.checker.")
                assert own or name.split(".")[0] in ALLOWED, f"{file.name}: {name}"


def test_it_is_short_enough_to_read() -> None:
    lines = sum(len(file.read_text().splitlines()) for file in FOLDER.glob("*.py"))
    assert lines <= 1950


def test_it_confirms_without_torch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    certified(tmp_path, EXAMPLES["pooled"]())
    blocked = (
        "import sys, pathlib\n"
        "for name in ('torch', 'safetensors', 'jaxtyping', 'sklearn'):\n"
        "    sys.modules[name] = None\n"
        "from unitmargin.steps.check import check_files\n"
        "print(check_files(pathlib.Path(sys.argv[1]))[0])\n"
    )
    command_line = (
        "import sys\n"
        "from unitmargin.cli import main\n"
        "try:\n    main(['check', sys.argv[1]])\n"
        "finally:\n    assert 'torch' not in sys.modules\n"
    )
    for code in (blocked, command_line):
        command = [sys.executable, "-c", code, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "check: 24 certificates confirmed, 0 not, 0 claim nothing" in done.stdout


def test_the_reading_order_names_each_file_behind_those_that_it_imports() -> None:
    order = re.findall(r"``(\w+)``", str(unitmargin.checker.__doc__))
    assert sorted(order) == sorted(file.stem for file in FOLDER.glob("[!_]*.py"))
    for place, name in enumerate(order):
        text = (FOLDER / f"{name}.py").read_text()
        imported = set(re.findall(r"^from unitmargin\.checker\.(\w+) import", text, re.MULTILINE))
        assert imported <= set(order[:place]), name
