"""Mutants: a copy of the package with one place changed, and the test that must notice."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """``old`` becomes ``new`` in a module, and ``test`` fails; both lie in folders of one name."""

    what: str
    module: str
    old: str
    new: str
    test: str


def source(mutant: Mutant, folder: str = "") -> Path:
    """The module that is mutated; ``folder`` is that of the package and of the tests."""
    return ROOT / "src" / "unitmargin" / folder / mutant.module


def run_test_of(
    mutant: Mutant, scratch: Path, folder: str = ""
) -> subprocess.CompletedProcess[str]:
    """The named test on the mutated copy in ``scratch``; exit status 1 if the mutant is killed."""
    shutil.copytree(ROOT / "src", scratch / "src")
    file = scratch / source(mutant, folder).relative_to(ROOT)
    file.write_text(file.read_text().replace(mutant.old, mutant.new, 1))
    test = ROOT / "tests" / folder / mutant.test
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, "-m", "not nightly", str(test)],
        env={**os.environ, "PYTHONPATH": str(scratch / "src")},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
