"""The state of a training run, the same on every device."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice

import torch
from jaxtyping import Int
from torch import Tensor, nn
from tqdm.auto import tqdm

from unitmargin.training.activations import recomputed_activations
from unitmargin.training.losses import bound_loss
from unitmargin.training.optimizers import build_optimizers
from unitmargin.training.options import TrainingOptions
from unitmargin.training.pace import Pace, Watch
from unitmargin.training.pieces import Pieces
from unitmargin.training.precision import require_precision, training_precision
from unitmargin.training.processes import Processes
from unitmargin.training.schedules import SCHEDULES
from unitmargin.training.share import Share


class Trainer(ABC):
    """The state of a training run: model, optimiser, options; one method an epoch.

    What its batches are, a subclass says.

    Args:
        epoch_steps: steps of an epoch.
    """

    def __init__(
        self,
        model: nn.Module,
        options: TrainingOptions,
        processes: Processes,
        quiet: bool,
        device: torch.device,
        epoch_steps: int,
    ) -> None:
        self.model, self.options, self.device = model, options, device
        self.processes, self.quiet = processes, quiet
        self.pieces = Pieces(options.pieces, processes, model) if options.pieces > 1 else None
        self.network = model if self.pieces else processes.wrap(model)
        self.loss = bound_loss(options.loss, options)
        model.zero_grad(set_to_none=True)  # whoever used the model before left its own
        momentum = options.momentum if options.optimizer == "sgd" else None
        self.optimizers = build_optimizers(
            model,
            options.learning_rate,
            options.manifold_rate,
            momentum,
            options.weight_decay,
            options.interval,
        )
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["initial_lr"] = group["lr"]  # which schedules multiply
        self.epoch_steps = epoch_steps
        self.steps = options.steps or options.epochs * self.epoch_steps
        self.epochs = math.ceil(self.steps / self.epoch_steps)
        self.pace = Pace(0.0, 0.0)
        require_precision(options.precision, model)

    @abstractmethod
    def _batches(self, epoch: int) -> Iterator[Share]:
        """This process's shares of the batches of an epoch, on the device."""

    def epoch(self, epoch: int) -> tuple[float, float]:
        """One pass over the batches; mean loss and last learning rate."""
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        first = epoch * self.epoch_steps
        length = min(self.epoch_steps, self.steps - first)
        watch, shown = Watch(), f"epoch {epoch + 1}"
        batches = watch.timed(islice(self._batches(epoch), length))
        # disable=None hides the bar where the output is no terminal, as a log.
        bar = tqdm(batches, desc=shown, total=length, leave=False, disable=self.quiet or None)
        self.model.train()
        for step, share in enumerate(bar):
            progress = (first + step) / self.steps
            try:
                total += self._step(share, progress) * share.batch
            except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
                raise FloatingPointError(
                    f"the weights cannot be orthogonalised any more in epoch {epoch + 1} "
                    f"({error}); lower the learning rate"
                ) from error
            watch.show(bar)
        # The device is through with all steps when their loss is read.
        mean = (float(total) if self.pieces else self.processes.average(total)) / watch.samples
        self.pace = watch.pace()
        if not math.isfinite(mean):
            raise FloatingPointError(
                f"the training loss must be finite, got {mean} in epoch {epoch + 1}; lower the "
                "learning rate"
            )
        return mean, self.optimizers[0].param_groups[0]["lr"]

    def evaluates(self, epoch: int) -> bool:
        """Whether the network is evaluated after this epoch."""
        return (epoch + 1) % self.options.evaluate_every == 0 or epoch + 1 == self.epochs

    def _own(self, batch: int) -> Int[Tensor, " share"]:
        """Where in a batch this process's samples stand."""
        if self.pieces:
            return self.pieces.positions(batch)
        return self.processes.share(torch.arange(batch))

    def _step(self, share: Share, progress: float) -> Tensor:
        options = self.options
        if self.pieces:
            loss = self.pieces.differentiate(share, self._backward)
        else:
            factor = self.processes.weight(share.batch, len(share.labels))
            loss = self._backward(share.inputs, share.labels, factor)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * SCHEDULES[options.schedule](progress)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss

    def _backward(self, inputs: Tensor, labels: Tensor, factor: float) -> Tensor:
        """Add the gradient of a mean loss, times a factor, to the parameters; that number."""
        options = self.options
        with (
            training_precision(options.precision, self.device),
            recomputed_activations(self.model, options.recompute_activations),
        ):
            loss = self.loss(self.network(inputs), labels) * factor
            loss.backward()
        return loss.detach()
