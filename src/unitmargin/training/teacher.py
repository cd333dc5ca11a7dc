"""A teacher: an unconstrained network whose answers soften the labels of a training."""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from math import prod
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn
from tqdm.auto import tqdm

from unitmargin.data import Samples, TarShards
from unitmargin.training.checkpoint import History, State, read_checkpoint, write_checkpoint
from unitmargin.training.identity import Identity
from unitmargin.training.lesson import Lesson
from unitmargin.training.options import IMAGE_DIMENSIONS, TrainingOptions
from unitmargin.training.precision import training_precision
from unitmargin.training.processes import Processes
from unitmargin.training.sample_trainer import SampleTrainer

PIXELS_AT_ONCE = 1000 * 32 * 32
"""Of a forward pass without gradient, in which a map of 64 channels takes 0.26 GB."""

LOGIT_SCALE = 8.0
"""By which logits are divided: behind a maximum over a map they begin large."""

HOW = {
    "optimizer": "sgd", "momentum": 0.9, "weight_decay": 5e-4, "schedule": "one_cycle",
    "loss": "offset_cross_entropy", "offset": 0.0, "temperature": LOGIT_SCALE,
    "steps": 0, "pieces": 1, "recompute_activations": False, "teacher_epochs": 0,
}  # fmt: skip
"""How a teacher is trained, where it is not as its student is."""

RATE = 0.4 / 512
"""Learning rate of a teacher, a sample of its batch."""

FORGETTING = 0.1
"""Share of a batch in running statistics."""


@dataclass(frozen=True)
class TeacherRecord:
    """An epoch of a teacher: its mean loss, and the time that it took."""

    loss: float
    seconds: float
    core_seconds: float


class Standardised(nn.BatchNorm2d):
    """Batch normalisation whose running statistics forget, from the first batch on, what they were
    before it: ten batches are their mean."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and self.num_batches_tracked is not None:
            self.momentum = max(FORGETTING, 1.0 / (1 + int(self.num_batches_tracked)))
        standardised: Tensor = super().forward(x)
        return standardised


class Residual(nn.Module):
    """The sum of a map and of a branch on it."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        total: Tensor = x + self.branch(x)
        return total


class Teacher(nn.Module):
    """Layers on images whose channels lie together in memory, where convolutions are fastest."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layers(x.contiguous(memory_format=torch.channels_last))
        return logits


def teacher_file(checkpoint: Path) -> Path:
    """Where the teacher of a training with this checkpoint is kept."""
    return checkpoint.with_stem(f"{checkpoint.stem}-teacher")


def build_teacher(channels: int, classes: int, width: int, seed: int) -> Teacher:
    """A residual network of eight convolutions for images of any size, the first of that width.

    Example:
        >>> build_teacher(3, 10, 32, 0)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        w, pool = width, nn.MaxPool2d(2, ceil_mode=True)
        layers: list[nn.Module] = [
            Standardised(channels, affine=False),
            *_convolution(channels, w), *_convolution(w, 2 * w), pool,
            Residual(nn.Sequential(*_convolution(2 * w, 2 * w), *_convolution(2 * w, 2 * w))),
            *_convolution(2 * w, 4 * w), pool,
            *_convolution(4 * w, 8 * w), pool,
            Residual(nn.Sequential(*_convolution(8 * w, 8 * w), *_convolution(8 * w, 8 * w))),
            nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(8 * w, classes, bias=False),
        ]  # fmt: skip
        return Teacher(*layers)


def _convolution(channels: int, width: int) -> Iterator[nn.Module]:
    yield nn.Conv2d(channels, width, 3, padding=1, bias=False)
    yield Standardised(width)
    yield nn.ReLU()


def require_teachable(samples: Samples | TarShards, options: TrainingOptions) -> None:
    """Raise unless a teacher, where options ask for one, can be taught on the samples.

    Raises:
        ValueError: shards, whose samples have no numbers, inputs that are no images, or one sample.
    """
    if options.teacher_epochs == 0:
        return
    if isinstance(samples, TarShards):
        raise ValueError(
            "teacher_epochs must be 0 where shards are streamed, whose samples have no numbers, "
            f"got {options.teacher_epochs}; decode them, or leave it out"
        )
    if len(samples.in_shape) != IMAGE_DIMENSIONS:
        raise ValueError(
            f"teacher_epochs must be 0 for inputs that are no images, got {options.teacher_epochs} "
            f"and inputs of shape {samples.in_shape}; leave it out"
        )
    if len(samples) < 2:
        raise ValueError(
            "teacher_epochs must be 0 for one sample, of which there are no statistics, got "
            f"{options.teacher_epochs}; leave it out"
        )


def teach(
    samples: Samples,
    classes: int,
    options: TrainingOptions,
    processes: Processes,
    device: torch.device,
    kept: tuple[Path, Identity] | None = None,
    quiet: bool = True,
) -> Lesson:
    r"""Train a teacher, or go on where its file stopped, and soften the labels by its answers.

    A label becomes :math:`(1 - a)\,\mathrm{onehot}(y) + a\,\mathrm{softmax}(z / \tau)` with the
    logits z of the teacher, its outputs over ``LOGIT_SCALE``, averaged over an image and its mirror
    image where the training mirrors; a is ``teacher_share`` and tau ``teacher_temperature``.

    Args:
        kept: file of the teacher, written after each epoch, and the training that it belongs to.

    Guarantee: the same bits on one CPU by one number of threads, also after an interruption where
    there is a file. The first process trains and all take its weights, so that their number changes
    nothing.
    Cost: on CIFAR-10 two minutes of a core an epoch at a width of 32, and about as the square of
    it. A batch is passed at once, whatever pieces the training has; labels take 8 bytes a class and
    sample in each process.
    Source: Hinton, Vinyals, Dean, arXiv 1503.02531.

    Raises:
        ValueError: a file of another training, or a teacher that knows no more than one class.
        FloatingPointError: a teacher that diverges.
    """
    width, seed = options.teacher_width, options.seed
    teacher = build_teacher(samples.in_shape[0], classes, width, seed).to(device)
    history = _train(teacher, samples, options, device, kept, quiet) if processes.first else []
    processes.agree(teacher)
    started, worked = time.perf_counter(), time.process_time()
    labels = _answers(teacher.eval(), samples, options, processes, device).to(samples.device)
    right = float((labels.argmax(1) == samples.labels).double().mean())
    try:
        _require_better_than_one_class(right, samples, options)
    except ValueError:
        _forget(kept)
        raise
    if not quiet:
        tqdm.write(f"teacher: {right:.4f} of the training samples right")
    labels.mul_(options.teacher_share)
    rows = torch.arange(len(labels), device=labels.device)
    labels[rows, samples.labels] += 1.0 - options.teacher_share
    spent = time.perf_counter() - started, time.process_time() - worked
    before = (sum(row[name] for row in history) for name in ("seconds", "core_seconds"))
    return Lesson(labels, *map(sum, zip(before, spent, strict=True)))


def _require_better_than_one_class(
    right: float, samples: Samples, options: TrainingOptions
) -> None:
    """Raise a ValueError for a teacher whose answers are no better than one class for all."""
    largest = float(samples.labels.bincount().max()) / len(samples)
    if right <= largest < 1.0:
        raise ValueError(
            "teacher_epochs must be enough for a teacher that knows more than the largest class, "
            f"got {options.teacher_epochs} with {right:.4f} of the training samples right; ask for "
            "more, for smaller batches, or for none"
        )


def _train(
    teacher: nn.Module,
    samples: Samples,
    options: TrainingOptions,
    device: torch.device,
    kept: tuple[Path, Identity] | None,
    quiet: bool,
) -> History:
    """Train all epochs that are not in the file; one record an epoch."""
    size = _batch_size(min(options.batch_size, len(samples)), len(samples))
    own = {"epochs": options.teacher_epochs, "batch_size": size, "learning_rate": RATE * size}
    changed = options.changed(**HOW, **own)
    trainer = SampleTrainer(teacher, samples, changed, Processes(), quiet, device)
    history: History = []
    if kept and kept[0].is_file():
        checkpoint = read_checkpoint(kept[0], TeacherRecord)
        checkpoint.state.identity.require(kept[1], kept[0])
        checkpoint.restore(teacher, trainer.optimizers)
        history = checkpoint.history
    for epoch in range(len(history), trainer.epochs):
        started, worked = time.perf_counter(), time.process_time()
        try:
            loss, _ = trainer.epoch(epoch)
        except FloatingPointError as error:
            _forget(kept)
            raise FloatingPointError(
                "the loss of the teacher must be finite, got another in its epoch "
                f"{epoch + 1}; ask for another batch_size or seed, or for no teacher"
            ) from error
        spent = time.perf_counter() - started, time.process_time() - worked
        history.append(asdict(TeacherRecord(loss, *spent)))
        if not quiet:
            tqdm.write(f"teacher {epoch + 1}/{trainer.epochs}  loss {loss:.4f}  {spent[0]:.1f} s")
        if kept:
            state = State(identity=kept[1], history=history)
            write_checkpoint(kept[0], teacher, trainer.optimizers, state)
    return history


def _forget(kept: tuple[Path, Identity] | None) -> None:
    """Remove the file of a teacher that is of no use, or another one could not be asked for."""
    if kept:
        kept[0].unlink(missing_ok=True)


def _batch_size(size: int, samples: int) -> int:
    """The next one by which no batch has one sample, of which there are no statistics."""
    return next(s for s in count(max(size, 2)) if samples % s != 1)


@torch.no_grad()
def _answers(
    teacher: nn.Module,
    samples: Samples,
    options: TrainingOptions,
    processes: Processes,
    device: torch.device,
) -> Float[Tensor, "n c"]:
    """Shares of the classes that a teacher gives to each sample."""

    def answer(index: Tensor) -> Tensor:
        images, _ = samples.batch(index.to(samples.device), device=device)
        views = (images, images.flip(-1)) if options.flip else (images,)
        with training_precision(options.precision, device):
            logits = torch.stack([teacher(view).float() for view in views])
        return (logits.mean(0) / (LOGIT_SCALE * options.teacher_temperature)).softmax(1).cpu()

    parts = torch.arange(len(samples)).split(max(1, PIXELS_AT_ONCE // prod(samples.in_shape[1:])))
    return torch.cat(processes.gather([answer(index) for index in processes.own(parts)]))
