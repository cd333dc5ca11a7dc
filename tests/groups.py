"""Processes that form a group, forked from the tests: they need no second import of torch."""

import multiprocessing
import os
import pickle
import socket
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

LONGEST = 120
"""Seconds after which a group is taken to hang."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _member(
    rank: int, count: int, port: int, work: Callable[..., Any], arguments: Any, answer: Connection
) -> None:
    from unitmargin.training.processes import leave_processes

    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= place | {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank)}
    torch.set_num_threads(1)
    try:
        answer.send_bytes(pickle.dumps((work(*arguments), None)))
        leave_processes()
    except BaseException:
        answer.send_bytes(pickle.dumps((None, traceback.format_exc())))
    finally:
        answer.close()
        os._exit(0)


def in_group(count: int, work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What a function answers in each process of a group, in their order.

    Raises:
        AssertionError: a process failed, or the group hangs.
    """
    context, port = multiprocessing.get_context("fork"), free_port()
    pipes = [context.Pipe(duplex=False) for _ in range(count)]
    members = [
        context.Process(target=_member, args=(rank, count, port, work, arguments, pipe[1]))
        for rank, pipe in enumerate(pipes)
    ]
    for member in members:
        member.start()
    try:
        answers = []
        for rank, (end, _) in enumerate(pipes):
            assert end.poll(LONGEST), f"process {rank} of {count} hangs"
            # By content: pickles of pipes lend the memory of a process that may be gone by then.
            answer, failure = pickle.loads(end.recv_bytes())
            assert failure is None, failure
            answers.append(answer)
        return answers
    finally:
        for member in members:
            member.kill()
            member.join()
        for pipe in pipes:
            for end in pipe:
                end.close()
