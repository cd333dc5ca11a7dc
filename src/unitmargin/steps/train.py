"""Train: recipe to weights.safetensors and history.csv, resumable after every epoch."""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import torch

from unitmargin.data import Dataset, TarShards, joint_domain, left_out
from unitmargin.models import Classifier
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.history import write_history
from unitmargin.runs.opening import open_dataset, open_model
from unitmargin.runs.recipe import IMAGES, Recipe
from unitmargin.runs.weights import origin_of, write_weights
from unitmargin.training.checkpoint import read_checkpoint
from unitmargin.training.identity import Identity, require_same_training
from unitmargin.training.logs import Log, open_log, require_log
from unitmargin.training.options import TrainingOptions
from unitmargin.training.pieces import require_pieces
from unitmargin.training.precision import require_precision
from unitmargin.training.processes import Processes, join_processes
from unitmargin.training.schedules import extendable
from unitmargin.training.teacher import require_teachable
from unitmargin.training.train import EpochRecord, drawn_trainer, train, usable_options


def steps_within(
    model: Classifier,
    dataset: Dataset,
    options: TrainingOptions,
    minutes: float,
    device: str = "cpu",
) -> int:
    """How many steps of a training take about that long, at least one; a few are made and timed,
    which changes the model.

    The evaluation after each epoch comes on top, and a teacher.
    """
    processes, place = join_processes(device)
    options = usable_options(options, processes, place)
    samples = dataset.train.near(place)
    trainer = drawn_trainer(model.to(place), samples, options, processes, True, place)
    seconds = torch.tensor(trainer.seconds_per_step(), dtype=torch.float64, device=place)
    return max(1, int(60.0 * minutes / processes.average(seconds)))


def train_run(
    recipe: Recipe,
    folder: RunFolder,
    device: str = "cpu",
    minutes: float | None = None,
    log: str | None = None,
) -> str:
    """Train a recipe into its folder, or go on where an interrupted run stopped.

    Nothing is written before recipe, data set and model are known to fit, what was trained before
    included. A finished run is extended to more epochs where the schedule allows it. With
    ``minutes`` the training has as many steps as take about that long, however many epochs they
    are; a run that was begun keeps its length. ``log`` names a program that is told of each
    epoch, one of :data:`unitmargin.training.logs.LOGS`.

    Raises:
        ImportError: the package of that log is missing.
        RunError: a folder of another recipe, or one among the images of its data set.
        LockedError: another process trains into the folder.
        ValueError: other data, another network or other options than the folder was begun with.
    """
    if log is not None:
        require_log(log)
    _require_apart(folder, recipe)
    processes, place = join_processes(device)
    if minutes is not None:
        recipe = _as_begun(recipe, folder, minutes)
    folder.require_own(recipe)
    if _is_trained(folder, recipe, processes):
        if processes.first and any(file.exists() for file in _no_longer_needed(folder, recipe)):
            with folder.hold():  # it was interrupted behind its weights
                _remove_checkpoint(folder, recipe)
        return _already_there(folder)
    dataset = open_dataset(recipe, folder.split())
    model = open_model(recipe, dataset)
    _require_fit(recipe.training, dataset, model, processes)
    if minutes is not None and not folder.begun:
        steps = steps_within(model, dataset, recipe.training, minutes, device)
        recipe = recipe.changed(training={"steps": steps})
        model = open_model(recipe, dataset)
    products = usable_options(recipe.training, processes, place).precision
    origin = origin_of(model, dataset, recipe.training, recipe.data.images(), products)
    with folder.hold() if processes.first else nullcontext():
        _require_same_training(folder, origin.identity, len(dataset.train))
        if processes.first:
            folder.start(recipe, dataset.split)
        if _is_trained(folder, recipe, processes):  # by a process that held the folder meanwhile
            return _already_there(folder)
        last = _train(recipe, folder, dataset, model, device, log if processes.first else None)
        if processes.first:
            write_weights(folder.weights_file, model, origin)
            _remove_checkpoint(folder, recipe)
    processes.wait()
    return f"train: {_summary(recipe, last)} -> {folder.weights_file}"


def _train(
    recipe: Recipe,
    folder: RunFolder,
    dataset: Dataset,
    model: Classifier,
    device: str,
    log: str | None,
) -> EpochRecord:
    """Train the model, with checkpoint and history in the folder; what the last epoch gave."""
    with open_log(log, folder.path, recipe.placeless().model_dump(mode="json")) as tell:
        result = train(
            model,
            dataset.train,
            dataset.test,
            recipe.training,
            checkpoint=folder.checkpoint_file,
            classes=dataset.classes,
            device=device,
            after_epoch=partial(_after_epoch, folder, tell),
        )
    return result.history[-1]


def _already_there(folder: RunFolder) -> str:
    return f"train: {folder.weights_file} is already there"


def _remove_checkpoint(folder: RunFolder, recipe: Recipe) -> None:
    for file in _no_longer_needed(folder, recipe):
        file.unlink(missing_ok=True)


def _no_longer_needed(folder: RunFolder, recipe: Recipe) -> tuple[Path, ...]:
    """The files that only a training that goes on needs, unless this one may be extended."""
    training = recipe.training
    kept = not training.steps and extendable(training.schedule)
    return () if kept else (folder.checkpoint_file, folder.teacher_file)


def _require_fit(
    options: TrainingOptions, dataset: Dataset, model: Classifier, processes: Processes
) -> None:
    require_precision(options.precision, model)
    require_pieces(options.pieces, processes, isinstance(dataset.train, TarShards))
    options.require_inputs(dataset.in_shape)
    require_teachable(dataset.train, options)
    joint_domain(dataset.train, dataset.test)  # which refuses test images in other units


def _require_apart(folder: RunFolder, recipe: Recipe) -> None:
    """Raise for a folder among the images of its data set, which its own files would change."""
    if recipe.data.name != IMAGES or recipe.data.path is None:
        return
    place, data = folder.path.resolve(), Path(recipe.data.path).expanduser().resolve()
    if place.is_relative_to(data) and not left_out("/".join(place.relative_to(data).parts)):
        raise RunError(
            f"the run folder must lie outside of the images in {data}, got {folder.path}; choose "
            "another --out"
        )


def _summary(recipe: Recipe, last: EpochRecord) -> str:
    length = f"{recipe.training.steps} steps" if recipe.training.steps else f"{last.epoch} epochs"
    return (
        f"{length}, clean {last.clean_accuracy:.4f}, certified@36/255 {last.certified_accuracy:.4f}"
    )


def _after_epoch(folder: RunFolder, tell: Log, history: Sequence[EpochRecord]) -> None:
    write_history(folder.history_file, history)
    tell(history[-1])


def _as_begun(recipe: Recipe, folder: RunFolder, minutes: float) -> Recipe:
    """The recipe with the length of a run that was begun; that of others is not known yet."""
    if not 0 < minutes < math.inf:
        rule = "minutes must be positive and finite"
        raise ValueError(f"{rule}, got {minutes}; leave it out for epochs")
    if not folder.begun:
        return recipe
    begun = folder.recipe().training
    return recipe.changed(training={"steps": begun.steps, "epochs": begun.epochs})


def _is_trained(folder: RunFolder, recipe: Recipe, processes: Processes) -> bool:
    """Whether the folder holds the weights of this very recipe, as the first process finds it.

    The others could look before or after it writes the recipe, and would wait for it in vain.
    """
    trained = processes.first and folder.weights_file.is_file() and folder.recipe() == recipe
    trained = trained and folder.origin().identity.options == recipe.training
    return processes.gather([trained])[0]


def _require_same_training(folder: RunFolder, identity: Identity, samples: int) -> None:
    """Raise a ValueError unless what the folder holds of a training is part of this one."""
    file = folder.weights_file
    if file.is_file():
        stored = folder.origin().identity
        # The history may be further: that of an extension that was interrupted.
        epochs = math.ceil(
            stored.options.count_steps(samples) / stored.options.epoch_steps(samples)
        )
        require_same_training(file, stored, epochs, identity, samples)
        longer = stored.options.count_steps(samples) != identity.options.count_steps(samples)
        if longer and not folder.checkpoint_file.is_file():
            raise ValueError(
                f"{file} can be trained further with {folder.checkpoint_file.name} alone, which is "
                "gone; train in another folder"
            )
    if folder.checkpoint_file.is_file():
        read_checkpoint(folder.checkpoint_file).require(identity, samples)
    if folder.teacher_file.is_file():
        read_checkpoint(folder.teacher_file).state.identity.require(identity, folder.teacher_file)
