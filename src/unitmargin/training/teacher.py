"""A teacher: an unconstrained network whose answers soften the labels of a training."""

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn
from tqdm.auto import tqdm

from unitmargin.data import Samples, TarShards
from unitmargin.training.checkpoint import History, State, read_checkpoint, write_checkpoint
from unitmargin.training.identity import LENGTHS, Identity
from unitmargin.training.lesson import Lesson
from unitmargin.training.memory import retained_memory
from unitmargin.training.options import TrainingOptions
from unitmargin.training.precision import training_precision
from unitmargin.training.processes import Processes
from unitmargin.training.sample_trainer import SampleTrainer

WIDTH = 32
"""Channels of the first convolution: on CIFAR-10 88 % of images right after ten epochs."""

ANSWERED_AT_ONCE = 1000
"""Samples a forward pass without gradient."""

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

IMAGE_DIMENSIONS = 3


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


def build_teacher(channels: int, classes: int, seed: int) -> Teacher:
    """A residual network of eight convolutions for images of any size.

    Example:
        >>> build_teacher(3, 10, 0)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        w, pool = WIDTH, nn.MaxPool2d(2, ceil_mode=True)
        layers: list[nn.Module] = [
            nn.BatchNorm2d(channels, affine=False),
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
    yield nn.BatchNorm2d(width)
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
    logits z of the teacher, averaged over an image and its mirror image where the training mirrors;
    a is ``teacher_share`` and tau ``teacher_temperature``.

    Args:
        kept: file of the teacher, written after each epoch, and the training that it belongs to.

    Guarantee: the same bits on one machine, also after an interruption where there is a file. The
    first process trains and all take its weights, so that their number changes nothing.
    Cost: on CIFAR-10 1.7 minutes of a core an epoch; the labels take 4 bytes a class and sample.
    Source: Hinton, Vinyals, Dean, arXiv 1503.02531.

    Raises:
        ValueError: a file of another training.
    """
    teacher = build_teacher(samples.in_shape[0], classes, options.seed).to(device)
    history: History = []
    with retained_memory():
        if processes.first:
            history = _train(teacher, samples, options, device, kept, quiet)
        processes.agree(teacher)
        answers = _answers(teacher.eval(), samples, options, processes, device)
    answers = answers.to(samples.device)
    hard = nn.functional.one_hot(samples.labels, classes).to(answers.dtype)
    spent = (sum(row[name] for row in history) for name in ("seconds", "core_seconds"))
    return Lesson(torch.lerp(hard, answers, options.teacher_share), *spent)


def _train(
    teacher: nn.Module,
    samples: Samples,
    options: TrainingOptions,
    device: torch.device,
    kept: tuple[Path, Identity] | None,
    quiet: bool,
) -> History:
    """Train all epochs that are not in the file; one record an epoch."""
    size = _batch_size(options.batch_size, len(samples))
    own = {"epochs": options.teacher_epochs, "batch_size": size, "learning_rate": RATE * size}
    changed = options.changed(**HOW, **own)
    trainer = SampleTrainer(teacher, samples, changed, Processes(), quiet, device)
    history: History = []
    if kept and kept[0].is_file():
        checkpoint = read_checkpoint(kept[0])
        _require_same(checkpoint.state.identity, *kept)
        checkpoint.restore(teacher, trainer.optimizers)
        history = checkpoint.history
    for epoch in range(len(history), trainer.epochs):
        started, worked = time.perf_counter(), time.process_time()
        loss, _ = trainer.epoch(epoch)
        spent = time.perf_counter() - started, time.process_time() - worked
        history.append({"loss": loss, "seconds": spent[0], "core_seconds": spent[1]})
        if not quiet:
            tqdm.write(f"teacher {epoch + 1}/{trainer.epochs}  loss {loss:.4f}  {spent[0]:.1f} s")
        if kept:
            state = State(identity=kept[1], history=history)
            write_checkpoint(kept[0], teacher, trainer.optimizers, state)
    return history


def _batch_size(size: int, samples: int) -> int:
    """The next one by which no batch has one sample, of which there are no statistics."""
    return next(s for s in count(max(size, 2)) if samples % s != 1)


def _require_same(stored: Identity, file: Path, identity: Identity) -> None:
    """Raise a ValueError unless a teacher's file belongs to the same training, of any length."""
    stored.require_network(identity.network, file)
    identity.data.require(stored.data, file)
    stored.require_options(identity.options, file, LENGTHS)


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

    parts = torch.arange(len(samples)).split(ANSWERED_AT_ONCE)
    return torch.cat(processes.gather([answer(index) for index in processes.own(parts)]))
