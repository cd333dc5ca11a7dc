"""Decoding many images: in this process, and in several ones where it takes long."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain

import numpy as np
from jaxtyping import UInt8

from unitmargin.data.files import CHUNK, DataError

ALONE = 1 << 25
"""Bytes of encoded images that are decoded before other processes are started: about two seconds of
work, which is what their start takes."""

Pixels = UInt8[np.ndarray, "height width *channels"]
Planes = UInt8[np.ndarray, "channels height width"]
Named = tuple[str, bytes]


def decode(
    images: Iterable[Named],
    resize: int | None = None,
    channels: int | None = None,
    processes: int | None = None,
    alone: int = ALONE,
) -> Iterator[Pixels]:
    """The pixels of each image, in the order of the images; see :func:`pixels`.

    The first ``alone`` bytes are decoded in this process, the others in ``processes`` (default: one
    a core), which decides nothing but the time. They are told to end with the iterator, leave
    interruptions to this process, and are not started by a process that itself was started so.

    Args:
        images: name and content of each, asked for as they are needed.

    Raises:
        DataError: an image that is refused, or processes that were killed.

    Cost: the memory of a few megabytes of encoded images a process.
    """
    from unitmargin.data.pixels import pixels

    count = spare_cores() if processes is None else processes
    rest = iter(images)
    done = 0
    for name, content in rest:
        if done >= alone and count > 1:
            yield from _decode_apart(chain([(name, content)], rest), resize, channels, count)
            return
        yield pixels(content, name, resize, channels)
        done += len(content)


def _decode_apart(
    images: Iterator[Named], resize: int | None, channels: int | None, processes: int
) -> Iterator[Pixels]:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, initializer=_leave_interruptions)
    pending: deque[Future[list[Pixels]]] = deque()
    try:
        for batch in _batches(images):
            pending.append(pool.submit(decode_batch, batch, resize, channels))
            while len(pending) > 2 * processes:
                yield from pending.popleft().result()
        while pending:
            yield from pending.popleft().result()
    except BrokenProcessPool as fault:
        raise DataError(
            "processes that decode images must run to their end, got one that was stopped; free "
            'some memory, and in a program of your own start under if __name__ == "__main__":'
        ) from fault
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def decode_batch(batch: list[Named], resize: int | None, channels: int | None) -> list[Pixels]:
    """The pixels of some images; what another process is asked for."""
    from unitmargin.data.pixels import pixels

    return [pixels(content, name, resize, channels) for name, content in batch]


def _batches(images: Iterator[Named]) -> Iterator[list[Named]]:
    batch: list[Named] = []
    size = 0
    for name, content in images:
        batch.append((name, content))
        size += len(content)
        if size >= CHUNK:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _leave_interruptions() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def spare_cores() -> int:
    """How many processes may decode; one of a process that was itself started to."""
    if multiprocessing.parent_process() is not None:
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
