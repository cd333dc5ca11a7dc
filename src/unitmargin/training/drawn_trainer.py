"""Training on what is drawn by seed and epoch: made ahead, with a checkpoint to go on from."""

import math
import time
from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path

import torch
from torch import nn

from unitmargin.training.checkpoint import History, State, read_checkpoint, write_checkpoint
from unitmargin.training.epochs import EpochRecord
from unitmargin.training.identity import Identity
from unitmargin.training.options import TrainingOptions
from unitmargin.training.processes import Processes
from unitmargin.training.share import Share
from unitmargin.training.trainer import Trainer

WARM_UP_STEPS = 2
"""The first steps of a fresh process touch their memory for the first time, and are slower."""

TIMED_STEPS = 4
"""Steps that are timed at least; they are whole intervals, in which every weight moves as often."""


def ahead(batches: Iterator[Share]) -> Iterator[Share]:
    """The batches, each made by another thread while the one before it is used.

    That thread computes alone: helpers of its own would take the cores from those of the step,
    which wait for each other.
    """
    helpers = torch.get_num_threads()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_compute_alone).result()
        torch.set_num_threads(helpers)
        following = thread.submit(next, batches, None)
        while (batch := following.result()) is not None:
            following = thread.submit(next, batches, None)
            yield batch


def _compute_alone() -> None:
    """No helpers for this thread, nor, until the number is set again, for those that start."""
    torch.set_num_threads(1)
    # A thread takes the number over when it is asked for, or at its first operation.
    torch.get_num_threads()


class DrawnTrainer(Trainer):
    """A training whose batches follow from seed and epoch, which makes resuming exact.

    Args:
        length: samples of an epoch.
        made_ahead: whether a batch is made while the one before it is used, where making one waits
            for a disk or another device.
    """

    def __init__(
        self,
        model: nn.Module,
        length: int,
        options: TrainingOptions,
        processes: Processes,
        quiet: bool,
        device: torch.device,
        made_ahead: bool,
    ) -> None:
        super().__init__(model, options, processes, quiet, device, options.epoch_steps(length))
        self.length, self.made_ahead = length, made_ahead

    @abstractmethod
    def _drawn(self, epoch: int) -> Iterator[Share]:
        """This process's shares of the batches of an epoch, on the device."""

    def _batches(self, epoch: int) -> Iterator[Share]:
        return ahead(self._drawn(epoch)) if self.made_ahead else self._drawn(epoch)

    def seconds_per_step(self) -> float:
        """Mean time of a step, from a few that change the model."""
        shares = (share for epoch in count() for share in self._batches(epoch))
        interval = self.options.interval
        timed = interval * math.ceil(TIMED_STEPS / interval)
        started = 0.0
        for step, share in enumerate(islice(shares, WARM_UP_STEPS + timed)):
            if step == WARM_UP_STEPS:
                started = time.perf_counter()
            # Reading the loss waits for the device.
            float(self._step(share, progress=0.0))
        return (time.perf_counter() - started) / timed

    def save(self, path: Path, identity: Identity, history: History) -> None:
        """Write the checkpoint of this training."""
        state = State(identity=identity, history=history)
        write_checkpoint(path, self.model, self.optimizers, state)

    def restore(self, path: Path, identity: Identity) -> History:
        """Go on from a checkpoint, if there is one of this training; the history so far."""
        if not path.is_file():
            return []
        checkpoint = read_checkpoint(path, EpochRecord)
        checkpoint.require(identity, self.length)
        checkpoint.restore(self.model, self.optimizers)
        return checkpoint.history
