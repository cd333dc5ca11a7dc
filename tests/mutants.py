"""Mutants: the package with one place changed, and the test that must notice."""

import importlib.util
import multiprocessing
import os
import subprocess
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

SERVER = multiprocessing.get_context("forkserver")
"""A process for each mutant, forked from one that has imported what no mutant touches."""

SERVER.set_forkserver_preload(["torch", "hypothesis", "safetensors.torch", "jaxtyping"])

RAN = 64
"""Added to the exit status of pytest: a process that fails before is told from a failed test."""

NOT_LOADED = 32
"""In place of the exit status, where the test ran without its mutant."""


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
    """The named test with the mutated module in ``scratch`` in place of the real one.

    Exit status 1 if the mutant is killed, 0 if it survives.
    """
    file = source(mutant, folder)
    mutated = scratch / file.name
    mutated.write_text(file.read_text().replace(mutant.old, mutant.new, 1))
    module = ".".join(file.relative_to(ROOT / "src").with_suffix("").parts)
    test, printed = str(ROOT / "tests" / folder / mutant.test), scratch / "printed.txt"
    process = SERVER.Process(target=_run, args=(module, mutated, test, printed))
    process.start()
    process.join()
    return subprocess.CompletedProcess(test, (process.exitcode or 0) - RAN, printed.read_text())


class Overlay(MetaPathFinder):
    """Finds one module in a file of its own, so that nothing else is copied or compiled again."""

    def __init__(self, module: str, file: Path) -> None:
        self.module, self.file = module, file

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self.module:
            return None
        return importlib.util.spec_from_file_location(name, self.file)


def _run(module: str, mutated: Path, test: str, printed: Path) -> None:
    """Run the test, without the run-time checks of types: they might kill in its place."""
    output = os.open(printed, os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(ROOT)
    assert "unitmargin" not in sys.modules
    sys.path.insert(0, str(ROOT / "src"))
    sys.meta_path.insert(0, Overlay(module, mutated))
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not nightly"]
    options += ["-o", "addopts=--import-mode=importlib --assert=plain"]
    options += [f"--basetemp={printed.parent / 'tests'}"]
    status = int(pytest.main([*options, test]))
    loaded = getattr(sys.modules.get(module), "__file__", None) == str(mutated)
    sys.stdout.flush()
    os._exit(RAN + (status if loaded else NOT_LOADED))
