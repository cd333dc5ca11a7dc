"""Memory that a step frees and the next one takes again stays with the process; how much it is."""

import ctypes
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

OWN_MEMORY = re.compile(r"RssAnon:\s+(\d+) kB")

TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4
"""Parameters of glibc's ``mallopt``."""

DEFAULTS = {TRIM_THRESHOLD: 128 * 2**10, TOP_PAD: 128 * 2**10, MMAP_MAX: 65536}

RETAINING = {TRIM_THRESHOLD: 2**31 - 1, TOP_PAD: 64 * 2**20, MMAP_MAX: 0}


@contextmanager
def retained_memory() -> Iterator[None]:
    """Within it, freed memory is not given back to the system, but used again; it is at the end.

    By default glibc maps every array of a few hundred kilobytes anew, and each of its pages is
    cleared by the system on first touch: a fifth of the time of a training step on CPUs. The
    process keeps the most memory it has needed. Where the C library is another one, nothing
    changes.

    Example:
        >>> with retained_memory():
        ...     pass
    """
    libc = ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
    try:
        _set(libc, RETAINING)
        yield
    finally:
        _set(libc, DEFAULTS)
        if libc is not None:
            libc.malloc_trim(0)


def held_memory(device: torch.device) -> float | None:
    """Bytes that this process holds: on a GPU the most of its tensors, else its own memory, without
    pages of mapped files, which are the system's.

    Where the system does not tell that (macOS), the most that the process has had so far, with
    those pages; None where it tells nothing (Windows).
    """
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    with suppress(OSError):
        found = OWN_MEMORY.search(Path("/proc/self/status").read_text(encoding="utf-8"))
        if found:
            return 1024.0 * int(found[1])
    try:
        import resource
    except ImportError:
        return None
    unit = 1.0 if platform.system() == "Darwin" else 1024.0
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _set(libc: ctypes.CDLL | None, parameters: dict[int, int]) -> None:
    for parameter, value in parameters.items():
        if libc is not None:
            libc.mallopt(parameter, value)
