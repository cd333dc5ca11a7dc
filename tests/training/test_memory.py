"""Memory that stays with the process, and goes back."""

import os
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from unitmargin.training.epochs import EpochRecord
from unitmargin.training.memory import held_memory

PROGRAM = """
import torch
from contextlib import nullcontext
from unitmargin.training.memory import retained_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1])

start = resident()
torch.ones(2**26)
given_back = resident() - start
with retained_memory():
    torch.ones(2**26)
    kept = resident() - start
print(given_back, kept, resident() - start)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_what_is_freed_stays_within_and_goes_back_at_the_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    before, within, after = map(int, done.stdout.split())
    pages = 2**26 * 4 // os.sysconf("SC_PAGESIZE")
    assert within > 0.9 * pages
    assert max(before, after) < 0.1 * pages


def without_proc(self: Path, *_: Any, **__: Any) -> str:
    raise FileNotFoundError(2, "No such file", str(self))


def test_where_the_system_tells_no_memory_none_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", without_proc)
    monkeypatch.setitem(sys.modules, "resource", None)
    assert held_memory(torch.device("cpu")) is None


@pytest.mark.parametrize(("system", "unit"), [("Darwin", 1.0), ("FreeBSD", 1024.0)])
def test_the_most_is_told_in_bytes_where_no_file_tells_it(
    system: str, unit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", without_proc)
    monkeypatch.setattr(platform, "system", lambda: system)
    usage = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda _: SimpleNamespace(ru_maxrss=7))
    monkeypatch.setitem(sys.modules, "resource", usage)  # type: ignore[arg-type]
    assert held_memory(torch.device("cpu")) == 7 * unit


def test_a_line_of_an_epoch_leaves_out_an_unknown_memory() -> None:
    record = EpochRecord(1, 0.5, None, None, None, 0.1, 2.0, rate=100.0, waiting=0.25)
    assert record.line(3).endswith("2.0 s  100 samples/s  25% waiting for data")
