"""Train: recipe to weights.safetensors and history.csv, resumable after every epoch."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from unitmargin.certificates import certificate_from_logits
from unitmargin.checkpoint import Checkpoint, read_checkpoint, write_checkpoint, write_weights
from unitmargin.data import Samples, as_samples, random_crop_flip
from unitmargin.losses import build_loss, margins
from unitmargin.models import Classifier
from unitmargin.optim import build_optimizers
from unitmargin.orthogonal import OrthogonalConv2d, OrthogonalLinear
from unitmargin.precision import check_precision, training_precision
from unitmargin.processes import Processes, join_processes
from unitmargin.promises import audit_layer
from unitmargin.recipe import Recipe, TrainingOptions
from unitmargin.runs import (
    HEADLINE_EPSILON,
    RunFolder,
    open_dataset,
    open_model,
    provenance,
    write_csv,
)

EVALUATION_BATCH = 2048
"""Samples a forward pass without gradient: the weights are orthogonalised once a batch, so larger
is cheaper, and 2048 activations of a 3 x 32 x 32 network take 25 MB a layer."""

Data = Samples | tuple[Tensor, Tensor]


@dataclass(frozen=True)
class EpochRecord:
    """One line of history.csv; accuracies are shares of the test samples."""

    epoch: int
    loss: float
    clean_accuracy: float
    certified_accuracy: float
    orthogonality_error: float
    learning_rate: float
    seconds: float

    def line(self, epochs: int) -> str:
        return (
            f"epoch {self.epoch}/{epochs}  loss {self.loss:.4f}  clean {self.clean_accuracy:.4f}  "
            f"certified@36/255 {self.certified_accuracy:.4f}  "
            f"|WW'-I| {self.orthogonality_error:.1e}  {self.seconds:.1f} s"
        )


@dataclass(frozen=True)
class TrainResult:
    """The trained model and one record an epoch."""

    model: Classifier
    history: tuple[EpochRecord, ...]


def schedule_factor(name: str, progress: float) -> float:
    """Factor on the learning rate at ``progress`` in [0, 1].

    ``halving`` is the paper's (x 0.5 at 1/3 and 2/3), ``one_cycle`` a linear warm-up over 30 %
    then a cosine to zero, ``linear`` a straight line to zero.

    Example:
        >>> [schedule_factor("halving", p) for p in (0.0, 0.5, 0.9)]
        [1.0, 0.5, 0.25]
    """
    factors = {
        "halving": 0.5 ** math.floor(min(3.0 * progress + 1e-9, 2.0)),
        "one_cycle": progress / 0.3
        if progress < 0.3
        else 0.5 + 0.5 * math.cos(math.pi * (progress - 0.3) / 0.7),
        "linear": 1.0 - progress,
        "constant": 1.0,
    }
    if name not in factors:
        raise ValueError(f"schedule must be one of {', '.join(factors)}, got {name!r}; choose one")
    return factors[name]


def train(
    model: Classifier,
    train_data: Data,
    test_data: Data,
    options: TrainingOptions | None = None,
    *,
    checkpoint: str | Path | None = None,
    device: str | torch.device = "cpu",
    quiet: bool = False,
    after_epoch: Callable[[Sequence[EpochRecord]], None] | None = None,
    **changes: Any,
) -> TrainResult:
    """Train a classifier; a plain loop, the same on every device.

    Args:
        model: trained in place.
        train_data, test_data: samples, or pairs of inputs and integer labels.
        options: how; keyword ``changes`` override single ones (``epochs=3``).
        checkpoint: file written after every epoch; if it exists, training goes on from it and
            ends with the same weights as an uninterrupted run on the same machine.
        device: where to train; samples and model are moved there. Under ``torchrun`` every
            process takes its share of each global batch, and ``cuda`` means one GPU a process.
        quiet: no progress bar and no line an epoch.
        after_epoch: called with all records so far before the checkpoint is written, in the first
            process alone.

    Raises:
        ValueError: an unknown option or name; a checkpoint of other options.
        FloatingPointError: the loss is not finite, or the weights lost their rank.

    Example:
        >>> from unitmargin.models import DenseUGNN
        >>> x, y = torch.rand(64, 2), torch.arange(64) % 2
        >>> result = train(DenseUGNN((2,), 2), (x, y), (x, y), epochs=2, quiet=True)
        >>> len(result.history)
        2
    """
    options = _changed(options or TrainingOptions(), changes)
    processes, place = join_processes(device)
    quiet = quiet or not processes.first
    model.to(place)
    trainer = _Trainer(model, as_samples(train_data).to(place), options, processes, quiet)
    test = as_samples(test_data).to(place)
    state = trainer.restore(Path(checkpoint)) if checkpoint else []
    history = [EpochRecord(**row) for row in state]
    for epoch in range(len(history), options.epochs):
        started = time.perf_counter()
        loss, rate = trainer.epoch(epoch)
        clean, certified = evaluate(model, test)
        error = orthogonality_error(model)
        seconds = time.perf_counter() - started
        history.append(EpochRecord(epoch + 1, loss, clean, certified, error, rate, seconds))
        if not quiet:
            tqdm.write(history[-1].line(options.epochs))
        if after_epoch and processes.first:
            after_epoch(history)
        if checkpoint and processes.first:
            trainer.save(Path(checkpoint), [asdict(record) for record in history])
    return TrainResult(model, tuple(history))


def _changed(options: TrainingOptions, changes: dict[str, Any]) -> TrainingOptions:
    known = {field.name for field in fields(TrainingOptions)}
    unknown = set(changes) - known
    if unknown:
        raise ValueError(
            f"training options must be among {', '.join(sorted(known))}, got "
            f"{', '.join(sorted(unknown))}; correct the name"
        )
    return replace(options, **changes)


class _Trainer:
    """The state of a training run: model, optimiser, options; one method an epoch."""

    def __init__(
        self,
        model: Classifier,
        samples: Samples,
        options: TrainingOptions,
        processes: Processes,
        quiet: bool,
    ) -> None:
        self.model, self.samples, self.options = model, samples, options
        self.processes, self.quiet = processes, quiet
        self.device = samples.inputs.device
        self.network = processes.wrap(model)
        self.loss = build_loss(options.loss, options.margin, options.offset, options.temperature)
        self.optimizers = build_optimizers(model, options.learning_rate, options.manifold_rate)
        self.steps = math.ceil(len(samples) / options.batch_size)
        schedule_factor(options.schedule, 0.0)
        check_precision(options.precision, model)

    def epoch(self, epoch: int) -> tuple[float, float]:
        """One pass over the samples; mean loss and last learning rate.

        Order and augmentation depend on seed and epoch alone, which makes resuming exact.
        """
        generator = torch.Generator().manual_seed(self.options.seed * 1_000_003 + epoch)
        order = torch.randperm(len(self.samples), generator=generator)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        batches = order.split(self.options.batch_size)
        bar = tqdm(batches, desc=f"epoch {epoch + 1}", leave=False, disable=self.quiet)
        self.model.train()
        for step, index in enumerate(bar):
            progress = (epoch + step / self.steps) / self.options.epochs
            try:
                total += self._step(index.to(self.device), generator, progress) * len(index)
            except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
                raise FloatingPointError(
                    f"the weights cannot be orthogonalised any more in epoch {epoch + 1} "
                    f"({error}); lower the learning rate"
                ) from error
        mean = self.processes.average(total) / len(self.samples)
        if not math.isfinite(mean):
            raise FloatingPointError(
                f"the training loss must be finite, got {mean} in epoch {epoch + 1}; lower the "
                "learning rate"
            )
        return mean, self.optimizers[0].param_groups[0]["lr"]

    def _step(self, index: Tensor, generator: torch.Generator, progress: float) -> Tensor:
        inputs, labels = self.samples.batch(index)
        if self.options.crop or self.options.flip:
            inputs = random_crop_flip(inputs, self.options.crop, self.options.flip, generator)
        own = self.processes.share(torch.arange(len(index), device=self.device))
        factor = schedule_factor(self.options.schedule, progress)
        with training_precision(self.options.precision, self.device):
            loss = self.loss(self.network(inputs[own]), labels[own])
            loss = loss * self.processes.weight(len(index), len(own))
            loss.backward()
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def save(self, path: Path, history: list[dict[str, Any]]) -> None:
        write_checkpoint(path, Checkpoint(self.model, self.optimizers, self.options, history))

    def restore(self, path: Path) -> list[dict[str, Any]]:
        if not path.is_file():
            return []
        return read_checkpoint(path, self.model, self.optimizers, self.options)


@torch.no_grad()
def evaluate(model: Classifier, samples: Samples) -> tuple[float, float]:
    """Clean accuracy, and the share of samples right with a radius above 36/255.

    Radii here divide by the row distances of the head and the constant of the input normalisation
    and take all other layers to be 1-Lipschitz; the certificates of the frozen network use
    measured constants for every layer.
    """
    model.eval()
    rows = model.head.weight().double()
    constants = torch.cdist(rows, rows) * model.normalize.norm()
    right, certified = 0, 0
    for start in range(0, len(samples), EVALUATION_BATCH):
        inputs, labels = samples.batch(slice(start, start + EVALUATION_BATCH))
        logits = model(inputs)
        positive = margins(logits, labels) > 0
        radius = certificate_from_logits(logits, constants).radius
        right += int(positive.sum())
        certified += int((positive & (radius > HEADLINE_EPSILON)).sum())
    return right / len(samples), certified / len(samples)


def orthogonality_error(model: Classifier) -> float:
    """Largest deviation from 1 of a singular value of any orthogonal layer, as it is evaluated."""
    trained = OrthogonalLinear | OrthogonalConv2d
    layers = [layer for layer in model.features.modules() if isinstance(layer, trained)]
    return max((audit_layer("", layer).deviation for layer in layers), default=0.0)


def write_history(folder: RunFolder, history: Sequence[EpochRecord]) -> None:
    """Write history.csv, one line an epoch."""
    names = [field.name for field in fields(EpochRecord)]
    write_csv(folder.history_file, names, [list(asdict(record).values()) for record in history])


def train_run(recipe: Recipe, folder: RunFolder, device: str = "cpu") -> str:
    """Train a recipe into its folder, or go on where an interrupted run stopped."""
    processes, _ = join_processes(device)
    if processes.first:
        folder.start(recipe)
    if folder.weights_file.is_file():
        return f"train: {folder.weights_file} is already there"
    dataset = open_dataset(recipe)
    model = open_model(recipe, dataset)
    result = train(
        model,
        dataset.train,
        dataset.test,
        recipe.training,
        checkpoint=folder.checkpoint_file,
        device=device,
        after_epoch=lambda history: write_history(folder, history),
    )
    if processes.first:
        write_weights(folder.weights_file, model, provenance())
        folder.checkpoint_file.unlink(missing_ok=True)
    processes.wait()
    last = result.history[-1]
    return (
        f"train: {last.epoch} epochs, clean {last.clean_accuracy:.4f}, certified@36/255 "
        f"{last.certified_accuracy:.4f} -> {folder.weights_file}"
    )
