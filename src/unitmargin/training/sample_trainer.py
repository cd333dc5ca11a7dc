"""Training on samples in memory: a drawn order, augmentation, a checkpoint to go on from."""

import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from unitmargin.data import Samples, random_crop_flip
from unitmargin.models import Classifier
from unitmargin.training.checkpoint import History, State, read_checkpoint, write_checkpoint
from unitmargin.training.identity import Identity
from unitmargin.training.options import TrainingOptions
from unitmargin.training.processes import Processes
from unitmargin.training.trainer import Trainer

WARM_UP_STEPS = 2
"""The first steps of a fresh process touch their memory for the first time, and are slower."""

TIMED_STEPS = 4


class SampleTrainer(Trainer):
    """A training that goes through samples once an epoch.

    Order and augmentation depend on seed and epoch alone, which makes resuming exact.
    """

    def __init__(
        self,
        model: Classifier,
        samples: Samples,
        options: TrainingOptions,
        processes: Processes,
        quiet: bool,
    ) -> None:
        steps = options.epoch_steps(len(samples))
        super().__init__(model, options, processes, quiet, samples.inputs.device, steps)
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

    def _augmented(self, inputs: Tensor, index: Tensor, generator: torch.Generator) -> Tensor:
        options = self.options
        mirrored = None if self.mirrored is None else self.mirrored[index.cpu()]
        if options.crop or mirrored is not None:
            how = options.crop, mirrored, generator, options.padding
            inputs = random_crop_flip(inputs, *how)
        return inputs

    def _batches(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of an epoch, augmented, on the device."""
        generator = self._generator(epoch)
        self.mirrored = self._mirrored(epoch)
        order = torch.randperm(len(self.samples), generator=generator)
        for index in order.split(self.options.batch_size):
            yield self._batch(index.to(self.device), generator)

    def _batch(self, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return self.samples.batch(index, lambda chosen: self._augmented(chosen, index, generator))

    def seconds_per_step(self) -> float:
        """Mean time of a step, from a few that change the model."""
        batch = min(self.options.batch_size, len(self.samples))
        generator = torch.Generator().manual_seed(self.options.seed)
        index = torch.arange(batch, device=self.device)
        started = 0.0
        for step in range(WARM_UP_STEPS + TIMED_STEPS):
            if step == WARM_UP_STEPS:
                started = time.perf_counter()
            # Reading the loss waits for the device.
            inputs, labels = self._batch(index, generator)
            float(self._step(inputs, labels, progress=0.0))
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
