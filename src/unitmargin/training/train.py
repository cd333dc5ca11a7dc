"""Train a classifier: a plain loop, the same on every device."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader
from tqdm.auto import tqdm

from unitmargin.data import Dataset, Given, Samples, TarShards, as_samples, joint_domain
from unitmargin.foundation.choice import require_kind
from unitmargin.foundation.files import require_path, require_writable
from unitmargin.foundation.full_precision import in_full_precision
from unitmargin.foundation.numbers import shown
from unitmargin.layers.faithful import require_faithful
from unitmargin.models import Classifier
from unitmargin.training.drawn_trainer import DrawnTrainer
from unitmargin.training.epochs import EpochRecord as EpochRecord
from unitmargin.training.epochs import make_records
from unitmargin.training.identity import Identity, identify
from unitmargin.training.lesson import Lesson
from unitmargin.training.loader import LoaderTrainer, loaded_range
from unitmargin.training.memory import retained_memory
from unitmargin.training.options import TrainingOptions
from unitmargin.training.precision import usable_precision
from unitmargin.training.processes import Processes, join_processes
from unitmargin.training.sample_trainer import SampleTrainer
from unitmargin.training.schedules import require_moving
from unitmargin.training.stream_trainer import StreamTrainer
from unitmargin.training.teacher import require_teachable, teach, teacher_file
from unitmargin.training.trainer import Trainer

Data = Given | TarShards | Dataset
"""What is trained and evaluated on."""

Kept = tuple[Path, Identity]
"""A checkpoint: its file, and what it is of."""


@dataclass(frozen=True)
class TrainResult:
    """The trained model and one record an epoch."""

    model: Classifier
    history: tuple[EpochRecord, ...]


@in_full_precision
def train(
    model: Classifier,
    train_data: Data,
    test_data: Data | None = None,
    options: TrainingOptions | None = None,
    *,
    checkpoint: str | Path | None = None,
    classes: Sequence[str] = (),
    device: str | torch.device = "cpu",
    quiet: bool = False,
    after_epoch: Callable[[Sequence[EpochRecord]], None] | None = None,
    **changes: Any,
) -> TrainResult:
    """Train a classifier; a plain loop, the same on every device.

    Args:
        model: trained in place, without gradients that it has; then in the mode of evaluation. Its
            ``domain`` becomes that of the training samples, wider where test samples lie beyond
            it (:func:`unitmargin.data.joint_domain`).
        train_data, test_data: samples, pairs of inputs and integer labels (tensors, NumPy arrays
            or data frames), torch data sets of such pairs, which are read once, or loaders of
            batches. Without test data nothing is evaluated; of a ``unitmargin`` data set the train
            samples are trained on, and the test samples are the default of the test data.
            A loader to train on is gone through once for its range, then once an epoch as it is:
            its order, batches and augmentation. So ``crop`` and ``flip`` are refused, there is no
            checkpoint, and ``batch_size`` and ``seed`` say nothing of its batches.
        options: how; keyword ``changes`` override single ones (``epochs=3``).
        checkpoint: file written after every epoch; if it exists, training goes on from it and
            ends with the same weights as an uninterrupted run on the same machine. More epochs
            extend it where the schedule has no other rates for those that were made. A teacher has
            a file beside it.
        classes: their names, which a checkpoint keeps; default: those of a ``unitmargin`` data set.
        device: where to train; samples and model are moved there. Under ``torchrun`` every
            process takes its share of each global batch, and ``cuda`` means one GPU a process.
        quiet: no progress bar and no line an epoch.
        after_epoch: called with all records so far before the checkpoint is written, in the first
            process alone.

    Raises:
        TypeError: a model, data, options or a checkpoint of another kind.
        ValueError: an unknown option or name; a model of another type than float32; inputs or
            labels that do not fit the model; a checkpoint of other options or data, or of another
            network, or one that not all processes see; with a loader a checkpoint,
            crop, flip, a teacher, or several processes; crop or flip of what is no image, or a crop
            as large as it; a teacher of what is no image, of shards, or that knows no more than one
            class.
        FloatingPointError: the loss is not finite, the weights lost their rank in a step (where
            the evaluation after one finds that, it is a ValueError), or they are not orthogonal
            after an epoch.

    Example:
        >>> from unitmargin.models import DenseUGNN
        >>> x, y = torch.rand(64, 2), torch.arange(64) % 2
        >>> result = train(DenseUGNN((2,), 2), (x, y), (x, y), epochs=2, quiet=True)
        >>> len(result.history)
        2
    """
    samples, test = _judged(model, train_data, test_data)
    names = _class_names(classes, train_data, model)
    options = _changed(options, changes)
    if after_epoch is not None and not callable(after_epoch):
        raise TypeError(f"after_epoch must be a function, got {shown(after_epoch)}; leave it out")
    file = None if checkpoint is None else require_path("checkpoint", checkpoint)
    processes, place = join_processes(device)
    quiet = quiet or not processes.first
    given = usable_options(options, processes, place, quiet), processes, quiet, place
    trainer: Trainer
    history: list[EpochRecord] = []
    kept = None
    if samples is None:
        _require_no_checkpoint(file)
        trainer = _loader_trainer(model, train_data, test, *given)
    else:
        options.require_inputs(samples.in_shape)
        require_teachable(samples, options)
        domain = joint_domain(samples, test)
        model.to(place)
        trainer = drawn = drawn_trainer(model, samples.near(place), *given)
        if file:
            if processes.first:
                require_writable(file)
            kept = file, identify(model, samples, test, options, names)
            history += _restored(drawn, *kept)
        _set_domain(model, domain)
    require_moving(options.schedule, trainer.steps)
    test = None if test is None else test.near(place)
    with retained_memory(), torch.inference_mode(False), torch.enable_grad():
        lesson = None if len(history) >= trainer.epochs else _taught(trainer, model, kept)
        for _ in make_records(trainer, model, test, history, lesson):
            if not quiet:
                tqdm.write(history[-1].line(trainer.epochs))
            if after_epoch and processes.first:
                after_epoch(tuple(history))
            if kept and processes.first:
                drawn.save(*kept, [asdict(record) for record in history])
    return TrainResult(model.eval(), tuple(history))


def _judged(
    model: Classifier, train_data: Data, test_data: Data | None
) -> tuple[Samples | TarShards | None, Samples | None]:
    """The samples to train on, None of a loader, and to evaluate on; raises unless they fit the
    model, and the model is one, in float32."""
    require_kind("model", model, Classifier, "pass a unitmargin model")
    require_faithful(model)
    others = {parameter.dtype for parameter in model.parameters()} - {torch.float32}
    if others:
        raise ValueError(
            f"model must have float32 parameters to be trained, got {others.pop()}; call "
            "model.float()"
        )
    if test_data is None and isinstance(train_data, Dataset):
        test_data = train_data.test
    by_loader = isinstance(train_data, DataLoader)
    samples = None if by_loader else _fitting(model, "train_data", train_data)
    return samples, None if test_data is None else _test_samples(model, test_data)


def usable_options(
    options: TrainingOptions, processes: Processes, place: torch.device, quiet: bool = True
) -> TrainingOptions:
    """The options in a precision of all processes; it is said where that is not the one asked."""
    used = usable_precision(options.precision, processes, place)
    if used != options.precision and not quiet:
        tqdm.write(f"products are in {used}: a processor here does not multiply bfloat16")
    return options.changed(precision=used)


def _class_names(classes: Sequence[str], data: Data, model: Classifier) -> Sequence[str]:
    """The names that are given, or those of the data set; raises unless each class has one."""
    names = () if isinstance(classes, str) else tuple(map(str, classes))
    if not names and not isinstance(classes, str):
        own = data.classes if isinstance(data, Dataset) else ()
        return own if len(own) == model.n_classes else ()
    if len({*names}) != len(names) or len(names) != model.n_classes:
        raise ValueError(
            f"classes must be {model.n_classes} different names, got {shown(classes)}; leave them "
            "out, or name every class"
        )
    return names


def _restored(trainer: DrawnTrainer, file: Path, identity: Identity) -> list[EpochRecord]:
    """The records of a checkpoint that the trainer goes on from; none where there is no file."""
    history = [EpochRecord(**row) for row in trainer.restore(file, identity)]
    made = trainer.processes.gather([len(history)])
    if len(set(made)) > 1:
        raise ValueError(
            "checkpoint must be the same for all processes, got one of "
            f"{' and '.join(map(str, made))} epochs; put it on a disk that they share"
        )
    return history


def _taught(trainer: Trainer, model: Classifier, kept: Kept | None) -> Lesson | None:
    """The lesson of a training of samples, if it has a teacher: it takes their labels from it."""
    options = trainer.options
    if not (isinstance(trainer, SampleTrainer) and options.teacher_epochs):
        return None
    given = trainer.samples, model.n_classes, options, trainer.processes, trainer.device
    file = (teacher_file(kept[0]), kept[1]) if kept else None
    trainer.lesson = teach(*given, file, trainer.quiet)
    return trainer.lesson


def drawn_trainer(
    model: Classifier,
    samples: Samples | TarShards,
    options: TrainingOptions,
    processes: Processes,
    quiet: bool,
    device: torch.device,
) -> DrawnTrainer:
    """The training of samples or of shards."""
    given = options, processes, quiet, device
    if isinstance(samples, TarShards):
        return StreamTrainer(model, samples, *given)
    return SampleTrainer(model, samples, *given)


def _loader_trainer(
    model: Classifier,
    loader: Any,
    test: Samples | None,
    options: TrainingOptions,
    processes: Processes,
    quiet: bool,
    place: torch.device,
) -> Trainer:
    trainer = LoaderTrainer(model.to(place), loader, options, processes, quiet, place)
    _set_domain(model, joint_domain(loaded_range(loader, model), test))
    return trainer


@torch.no_grad()
def _set_domain(model: Classifier, domain: tuple[float, float]) -> None:
    model.domain.copy_(torch.tensor(domain, dtype=torch.float64))


def _require_no_checkpoint(file: Path | None) -> None:
    if file is not None:
        raise ValueError(
            "checkpoint must be left out with a DataLoader, whose order cannot be taken up again, "
            f"got {file}; leave it out, or pass a Dataset"
        )


def _changed(options: TrainingOptions | None, changes: Mapping[str, Any]) -> TrainingOptions:
    given = TrainingOptions() if options is None else options
    require_kind("options", given, TrainingOptions, "pass changes as keywords, such as epochs=3")
    changed = given.changed(**changes)
    changed.require_epochs(changes.get("epochs"))
    return changed


def _test_samples(model: Classifier, data: Data) -> Samples:
    samples = _fitting(model, "test_data", data)
    if isinstance(samples, TarShards):
        raise TypeError("test_data must be samples, got TarShards; decode them as images")
    return samples


def _fitting(model: Classifier, name: str, data: Data) -> Samples | TarShards:
    """The samples of ``train_data`` or ``test_data``; raises unless the model takes them."""
    if isinstance(data, Dataset):
        data = data.test if name == "test_data" else data.train
    samples = data if isinstance(data, TarShards) else as_samples(data, name)
    if samples.in_shape != model.in_shape:
        raise ValueError(
            f"{name} must hold inputs of shape {model.in_shape}, that of the model, got "
            f"{samples.in_shape}; resize them, or build a model for them"
        )
    largest = int(samples.labels.argmax())
    if int(samples.labels[largest]) >= model.n_classes:
        raise ValueError(
            f"{name} must hold labels below {model.n_classes}, the number of classes of the model, "
            f"got {int(samples.labels[largest])} in sample {largest}; count from 0, or build a "
            "model of more classes"
        )
    return samples
