"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import unitmargin

ROOT = Path(str(unitmargin.__file__)).parent

# By file name, so that a module that cannot be imported fails its own test alone.
MODULES = sorted(
    ".".join(("unitmargin", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    )
    for file in ROOT.rglob("*.py")
    if file.name != "__main__.py"
)


class Finder(doctest.DocTestFinder):
    """Finds functions too that a decorator has wrapped, such as a type checker's."""

    def _from_module(self, module: ModuleType | None, object: Any) -> bool:
        origin = getattr(inspect.unwrap(object), "__module__", None)
        return module is not None and origin == module.__name__


def examples(name: str) -> list[doctest.DocTest]:
    module = importlib.import_module(name)
    found = Finder(exclude_empty=True).find(module, globs=dict(vars(module)))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    for test in examples(name):
        runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("name", MODULES)
def test_no_example_is_overlooked(name: str) -> None:
    source = inspect.getsource(importlib.import_module(name))
    written = sum(line.lstrip().startswith(">>> ") for line in source.splitlines())
    assert sum(len(test.examples) for test in examples(name)) == written


def test_the_package_has_examples() -> None:
    assert sum(len(examples(name)) for name in MODULES) > 30
