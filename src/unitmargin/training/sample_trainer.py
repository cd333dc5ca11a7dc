"""Training on samples: a drawn order, augmentation, a checkpoint to go on from."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from unitmargin.data import Samples, crop_flip, draw_crops
from unitmargin.models import Classifier
from unitmargin.training.checkpoint import History, State, read_checkpoint, write_checkpoint
from unitmargin.training.identity import Identity
from unitmargin.training.options import TrainingOptions
from unitmargin.training.processes import Processes
from unitmargin.training.trainer import Share, Trainer

WARM_UP_STEPS = 2
"""The first steps of a fresh process touch their memory for the first time, and are slower."""

TIMED_STEPS = 4


def ahead(batches: Iterator[Share]) -> Iterator[Share]:
    """The batches, each made by another thread while the one before it is used."""
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(next, batches, None)
        while (batch := following.result()) is not None:
            following = thread.submit(next, batches, None)
            yield batch


class SampleTrainer(Trainer):
    """A training that goes through samples once an epoch.

    Order and augmentation depend on seed and epoch alone, which makes resuming exact, in any number
    of processes. A process gathers and augments its share of each batch and no more.

    Args:
        device: of the training; default: that of the samples, which may lie elsewhere.
    """

    def __init__(
        self,
        model: Classifier,
        samples: Samples,
        options: TrainingOptions,
        processes: Processes,
        quiet: bool,
        device: torch.device | None = None,
    ) -> None:
        steps, place = options.epoch_steps(len(samples)), device or samples.inputs.device
        super().__init__(model, options, processes, quiet, place, steps)
        self.samples = samples
        self.mirrored = self._mirrored(0)

    def _generator(self, epoch: int) -> torch.Generator:
        return torch.Generator().manual_seed(self.options.seed * 1_000_003 + epoch)

    def _mirrored(self, epoch: int) -> Tensor | None:
        """The samples that are mirrored in an epoch: a random half, and the other half in the next
        one, so that two epochs show every image both ways."""
        if not self.options.flip:
            return None
        half = torch.rand(len(self.samples), generator=self._generator(-1)) < 0.5
        return half ^ (epoch % 2 == 1)

    def _batches(self, epoch: int) -> Iterator[Share]:
        batches = self._drawn(epoch)
        elsewhere = self.samples.inputs.device != self.device
        return ahead(batches) if elsewhere or self.samples.mapped else batches

    def _drawn(self, epoch: int) -> Iterator[Share]:
        generator = self._generator(epoch)
        self.mirrored = self._mirrored(epoch)
        order = torch.randperm(len(self.samples), generator=generator)
        for index in order.split(self.options.batch_size):
            yield self._batch(index, generator)

    def _batch(self, index: Tensor, generator: torch.Generator) -> Share:
        """This process's share of a batch; what is drawn for it is drawn for all of the batch."""
        options, own = self.options, self.processes.share(torch.arange(len(index)))
        mirrored = None if self.mirrored is None else self.mirrored[index]
        change = None
        if options.crop or mirrored is not None:
            crops = draw_crops(len(index), options.crop, mirrored, generator).at(own)
            change = partial(crop_flip, crops=crops, padding=options.crop, mode=options.padding)
        chosen = index[own].to(self.samples.inputs.device)
        return Share(*self.samples.batch(chosen, change, self.device), len(index))

    def seconds_per_step(self) -> float:
        """Mean time of a step, from a few that change the model."""
        batch = min(self.options.batch_size, len(self.samples))
        generator = torch.Generator().manual_seed(self.options.seed)
        index = torch.arange(batch)
        started = 0.0
        for step in range(WARM_UP_STEPS + TIMED_STEPS):
            if step == WARM_UP_STEPS:
                started = time.perf_counter()
            # Reading the loss waits for the device.
            float(self._step(self._batch(index, generator), progress=0.0))
        return (time.perf_counter() - started) / TIMED_STEPS

    def save(self, path: Path, identity: Identity, history: History) -> None:
        """Write the checkpoint of this training."""
        state = State(identity=identity, history=history)
        write_checkpoint(path, self.model, self.optimizers, state)

    def restore(self, path: Path, identity: Identity) -> History:
        """Go on from a checkpoint, if there is one of this training; the history so far."""
        if not path.is_file():
            return []
        checkpoint = read_checkpoint(path)
        checkpoint.require(identity, len(self.samples))
        checkpoint.restore(self.model, self.optimizers)
        return checkpoint.history
