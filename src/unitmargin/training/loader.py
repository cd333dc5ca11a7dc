"""Training on a DataLoader as it is: its order, its batches, its workers, its augmentation."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from unitmargin.data import Samples, read_batches
from unitmargin.models import Classifier
from unitmargin.training.options import TrainingOptions
from unitmargin.training.processes import Processes
from unitmargin.training.share import Share
from unitmargin.training.trainer import Trainer


class LoaderTrainer(Trainer):
    """A training that goes through a loader once an epoch; an epoch has as many steps as it.

    Raises:
        TypeError: a loader without a length.
        ValueError: options that are the loader's to decide, several processes, or an empty loader.
    """

    def __init__(
        self,
        model: Classifier,
        loader: DataLoader[Any],
        options: TrainingOptions,
        processes: Processes,
        quiet: bool,
        device: torch.device,
    ) -> None:
        require_loader(loader, options, processes)
        super().__init__(model, options, processes, quiet, device, len(loader))
        self.loader, self.classifier = loader, model

    def _batches(self, epoch: int) -> Iterator[Share]:
        count = samples = 0
        for inputs, labels in loaded(self.loader, self.classifier):
            count, samples = count + 1, samples + len(labels)
            if len(labels):
                yield Share(inputs.to(self.device), labels.to(self.device), len(labels))
        if count < self.epoch_steps:
            raise ValueError(
                f"train_data must yield its {self.epoch_steps} batches in every pass, got {count} "
                f"in epoch {epoch + 1}; pass a loader that can be gone through again"
            )
        if not samples:
            raise ValueError(
                f"train_data must yield a sample at least in every pass, got {count} empty batches "
                f"in epoch {epoch + 1}; pass a loader that can be gone through again"
            )


def require_loader(loader: DataLoader[Any], options: TrainingOptions, processes: Processes) -> None:
    """Raise unless a training can go through the loader; see :class:`LoaderTrainer`."""
    try:
        length = len(loader)
    except TypeError:
        raise TypeError(
            "train_data must be a DataLoader with a length, got one of a data set without; give "
            "the data set a __len__"
        ) from None
    if length == 0:
        raise ValueError("train_data must yield a batch at least, got none; add samples")
    given = [name for name in ("crop", "flip", "teacher_epochs") if getattr(options, name)]
    if given:
        raise ValueError(
            f"{given[0]} must be left out with a DataLoader, whose samples have no "
            f"numbers and are augmented by it, got {getattr(options, given[0])}; pass a Dataset"
        )
    if processes.count > 1:
        raise ValueError(
            f"train_data must be samples in {processes.count} processes, which share each batch, "
            "got a DataLoader, whose order may differ in each; pass its dataset"
        )


def loaded(loader: DataLoader[Any], model: Classifier) -> Iterator[tuple[Tensor, Tensor]]:
    """The batches of a loader; raises for one that the model does not take."""
    for number, (inputs, labels) in enumerate(read_batches(loader, "train_data")):
        if tuple(inputs.shape[1:]) != tuple(model.in_shape):
            raise ValueError(
                f"train_data must hold inputs of shape {model.in_shape}, that of the model, got "
                f"{tuple(inputs.shape[1:])} in batch {number}; resize them, or build a model for "
                "them"
            )
        if not bool(inputs.isfinite().all()):
            raise ValueError(
                f"inputs of train_data must be finite in float32, got others in batch {number}; "
                "remove or repair them, or write them in a larger unit"
            )
        if labels.numel() and not 0 <= int(labels.min()) <= int(labels.max()) < model.n_classes:
            wrong = int(labels.min()) if int(labels.min()) < 0 else int(labels.max())
            raise ValueError(
                f"train_data must hold labels from 0 to {model.n_classes - 1}, the classes of the "
                f"model, got {wrong} in batch {number}; count from 0, or build a model of more "
                "classes"
            )
        yield inputs, labels


def loaded_range(loader: DataLoader[Any], model: Classifier) -> Samples:
    """Two samples, one of the smallest and one of the largest entry of what a loader yields: their
    domain is that of the whole. Raises if it yields nothing. Cost: one pass."""
    ends = [torch.stack(inputs.aminmax()) for inputs, _ in loaded(loader, model) if len(inputs)]
    if not ends:
        raise ValueError("train_data must yield a sample at least, got none; add samples")
    extremes = torch.stack(torch.stack(ends).aminmax())
    inputs = extremes.view(2, *(1 for _ in model.in_shape))
    return Samples(inputs, torch.zeros(2, dtype=torch.int64))
