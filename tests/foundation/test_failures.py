"""What an exception says: one line with the file, the rule and the next step, or a mistake."""

import errno
import os
from typing import Any

import pytest
import torch

from unitmargin.foundation.choice import require_kind
from unitmargin.foundation.failures import LONGEST, STEPS, describe, one_line


def raised(act: Any) -> BaseException:
    """What an act raises."""
    try:
        act()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("code", STEPS)
def test_what_the_system_refuses_names_file_reason_and_next_step(code: int) -> None:
    line = describe(OSError(code, os.strerror(code), "runs/x/model.safetensors"))
    assert line == f"runs/x/model.safetensors: {os.strerror(code)}; {STEPS[code]}"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ENOSPC, "No space left"), "a file or standard output: No space left; free"),
        (OSError(errno.ENXIO, "No device", b"\xff"), "\\udcff: No device; choose another"),
        (FileNotFoundError("no recipe at x; pass a file"), "no recipe at x; pass a file"),
        (MemoryError(), "memory must suffice, got: MemoryError; use fewer samples (--limit)"),
        (RuntimeError("CUDA out of memory. Tried 2 GiB\nmore"), "got: CUDA out of memory. Tried 2"),
        (RuntimeError("first\nsecond\n#0 frame in C++"), "first"),
        (ImportError("No module named 'PIL'", name="PIL"), "No module named 'PIL'; run `pip"),
        (ValueError(), "ValueError"),
        (ValueError("a\n\tb\x1b[31m"), "a b\\x1b[31m"),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "no"), "got '\\udcff'; rename files"),
        (FloatingPointError("the loss is nan"), "the loss is nan"),
        (OverflowError("int too large"), "int too large; a number among the recipe"),
        (RuntimeError("Overflow when unpacking long long"), "unpacking long long; a number among"),
        (RecursionError("maximum depth"), "must not be nested so deeply: maximum depth; use less"),
        (raised(lambda: torch.empty(10**15)), "you tried to allocate 4000000000000000 bytes"),
        (raised(lambda: torch.empty(2) @ torch.empty(3)), "inconsistent tensor size"),
        (raised(lambda: require_kind("x", 3, str, "quote it")), "x must be of type str, got int"),
    ],
)
def test_what_is_foreseeable_is_one_line(error: BaseException, expected: str) -> None:
    line = describe(error)
    assert line is not None
    assert expected in line
    assert line.isprintable()
    assert "enforce fail" not in line


def test_what_torch_says_of_its_own_sources_is_left_out() -> None:
    text = "no options: failed\nException raised from f at x.h:79 (most recent call first):\n# C++"
    assert one_line(f"{text}; correct the value") == "no options: failed; correct the value"


def test_a_long_line_keeps_its_beginning_and_its_end() -> None:
    line = one_line(f"begin {'x' * 5 * LONGEST} end")
    assert len(line) < 1.1 * LONGEST
    assert line.startswith("begin ")
    assert line.endswith(" end")


@pytest.mark.parametrize(
    "error",
    [
        KeyError("weight"), AttributeError("no such attribute"), IndexError("out of range"),
        AssertionError(), ZeroDivisionError("division by zero"), NotImplementedError(),
        ImportError("cannot import name", name="unitmargin.frozen"),
        raised(lambda: len(3)),  # type: ignore[arg-type]
        TypeError("x must be of type str, got int"),  # not raised by the package
    ],
)  # fmt: skip
def test_a_mistake_of_the_program_is_none_of_the_users(error: BaseException) -> None:
    assert describe(error) is None


LINES = [
    "first, second = 1, 2, 3",
    "first, second = [1]",
    "table = {1: 1}\nfor key in table: table[key + 1] = 1",
    "list(zip([1], [], strict=True))",
]


@pytest.mark.parametrize("line", LINES)
def test_what_python_says_of_a_line_of_the_package_is_a_mistake(line: str) -> None:
    """Of a line of another package it may be about a file, so that is told in one line."""
    assert describe(raised(lambda: exec(line, {"__name__": "unitmargin.made"}))) is None
    assert describe(raised(lambda: exec(line, {"__name__": "pandas.made"}))) is not None


def test_a_wrong_value_in_a_line_of_the_package_is_none() -> None:
    for line in ("float('low')", "raise ValueError('two values must be given, got 3; give two')"):
        assert describe(raised(lambda line=line: exec(line, {"__name__": "unitmargin.made"})))
