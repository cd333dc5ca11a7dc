"""Memory that stays with the process, and goes back."""

import os
import platform
import subprocess
import sys

import pytest

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
