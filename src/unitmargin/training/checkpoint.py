"""Weights and checkpoints as safetensors: exact resume without pickle."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unitmargin.foundation.tensors import read_tensors, write_tensors
from unitmargin.training.options import TrainingOptions

Optimizers = Sequence[torch.optim.Optimizer]
History = list[dict[str, Any]]


def write_weights(path: Path, model: nn.Module, provenance: dict[str, str]) -> None:
    """Write a state dictionary and its origin; the file appears whole or not at all."""
    write_tensors(path, model.state_dict(), provenance)


def read_weights(path: Path, model: nn.Module) -> dict[str, str]:
    """Load a state dictionary written by :func:`write_weights`; returns its origin.

    Raises:
        ValueError: damaged file, or tensors that are not the model's.
    """
    try:
        tensors, origin = read_tensors(path)
        model.load_state_dict(tensors)
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"{path} does not fit the recipe's model: {error}; train again") from None
    return origin


def write_checkpoint(
    path: Path, model: nn.Module, optimizers: Optimizers, options: TrainingOptions, history: History
) -> None:
    """Write all that a training run needs to go on after an epoch; see :func:`read_checkpoint`."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for position, optimizer in enumerate(optimizers):
        for index, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                tensors[f"optimizer.{position}.{index}.{name}"] = value
    words = {"options": json.dumps(options.model_dump()), "history": json.dumps(history)}
    write_tensors(path, tensors, words)


def read_checkpoint(
    path: Path, model: nn.Module, optimizers: Optimizers, options: TrainingOptions
) -> History:
    """Restore model and optimisers in place; returns the history so far.

    Raises:
        ValueError: a damaged file, or a checkpoint of other training options or another model.
    """
    try:
        tensors, words = read_tensors(path)
    except ValueError as error:
        raise ValueError(f"{error}; delete it to start again") from None
    if not {"options", "history"} <= set(words):
        raise ValueError(f"{path} is not a checkpoint; delete it to start again")
    stored, given = json.loads(words["options"]), options.model_dump()
    if stored != given:
        changed = sorted(key for key, value in given.items() if stored.get(key) != value)
        raise ValueError(
            f"{path} was written with other training options ({', '.join(changed)}); use the same "
            "ones, or delete it to start again"
        )
    try:
        _restore(tensors, model, optimizers)
    except RuntimeError as error:
        raise ValueError(
            f"{path} is of another model ({error}); use the same one, or delete it to start again"
        ) from None
    history: History = json.loads(words["history"])
    return history


def _restore(tensors: dict[str, Tensor], model: nn.Module, optimizers: Optimizers) -> None:
    def below(prefix: str) -> dict[str, Tensor]:
        return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

    model.load_state_dict(below("model."))
    for position, optimizer in enumerate(optimizers):
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in below(f"optimizer.{position}.").items():
            index, key = name.split(".", 1)
            state.setdefault(int(index), {})[key] = value
        optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
