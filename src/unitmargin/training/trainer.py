"""The state of a training run, the same on every device."""

import math
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor
from tqdm.auto import tqdm

from unitmargin.data import Samples, random_crop_flip
from unitmargin.layers.faithful import require_faithful
from unitmargin.models import Classifier
from unitmargin.training.checkpoint import History, State, read_checkpoint, write_checkpoint
from unitmargin.training.identity import Identity
from unitmargin.training.losses import bound_loss
from unitmargin.training.optimizers import build_optimizers
from unitmargin.training.options import TrainingOptions
from unitmargin.training.precision import require_precision, training_precision
from unitmargin.training.processes import Processes
from unitmargin.training.schedules import SCHEDULES

WARM_UP_STEPS = 2
"""The first steps of a fresh process touch their memory for the first time, and are slower."""

TIMED_STEPS = 4


class Trainer:
    """The state of a training run: model, optimiser, options; one method an epoch."""

    def __init__(
        self,
        model: Classifier,
        samples: Samples,
        options: TrainingOptions,
        processes: Processes,
        quiet: bool,
    ) -> None:
        self.samples = samples
        self._begin(model, options, processes, quiet, samples.inputs.device)
        self.mirrored = self._mirrored(0)

    def _begin(
        self,
        model: Classifier,
        options: TrainingOptions,
        processes: Processes,
        quiet: bool,
        device: torch.device,
    ) -> None:
        require_faithful(model)
        self.model, self.options, self.device = model, options, device
        self.processes, self.quiet = processes, quiet
        self.network = processes.wrap(model)
        self.loss = bound_loss(options.loss, options)
        momentum = options.momentum if options.optimizer == "sgd" else None
        self.optimizers = build_optimizers(
            model,
            options.learning_rate,
            options.manifold_rate,
            momentum,
            options.weight_decay,
            options.interval,
        )
        self.epoch_steps = self._epoch_steps()
        self.steps = options.steps or options.epochs * self.epoch_steps
        self.epochs = math.ceil(self.steps / self.epoch_steps)
        require_precision(options.precision, model)

    def _epoch_steps(self) -> int:
        return self.options.epoch_steps(len(self.samples))

    def epoch(self, epoch: int) -> tuple[float, float]:
        """One pass over the samples; mean loss and last learning rate.

        Order and augmentation depend on seed and epoch alone, which makes resuming exact.
        """
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        first = epoch * self.epoch_steps
        length = min(self.epoch_steps, self.steps - first)
        batches = islice(self._batches(epoch), length)
        shown, seen = f"epoch {epoch + 1}", 0
        # disable=None hides the bar where the output is no terminal, as a log.
        bar = tqdm(batches, desc=shown, total=length, leave=False, disable=self.quiet or None)
        self.model.train()
        for step, (inputs, labels) in enumerate(bar):
            progress = (first + step) / self.steps
            seen += len(labels)
            try:
                total += self._step(inputs, labels, progress) * len(labels)
            except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
                raise FloatingPointError(
                    f"the weights cannot be orthogonalised any more in epoch {epoch + 1} "
                    f"({error}); lower the learning rate"
                ) from error
        mean = self.processes.average(total) / seen
        if not math.isfinite(mean):
            raise FloatingPointError(
                f"the training loss must be finite, got {mean} in epoch {epoch + 1}; lower the "
                "learning rate"
            )
        return mean, self.optimizers[0].param_groups[0]["lr"]

    def evaluates(self, epoch: int) -> bool:
        """Whether the network is evaluated after this epoch."""
        return (epoch + 1) % self.options.evaluate_every == 0 or epoch + 1 == self.epochs

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

    def _step(self, inputs: Tensor, labels: Tensor, progress: float) -> Tensor:
        options = self.options
        count = len(labels)
        own = self.processes.share(torch.arange(count, device=self.device))
        with training_precision(options.precision, self.device):
            loss = self.loss(self.network(inputs[own]), labels[own])
            loss = loss * self.processes.weight(count, len(own))
            loss.backward()
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * SCHEDULES[options.schedule](progress)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss.detach()

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
