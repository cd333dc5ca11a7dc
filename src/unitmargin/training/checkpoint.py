"""Weights and checkpoints as safetensors: exact resume without pickle."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unitmargin.foundation.tensors import read_tensors, write_tensors
from unitmargin.training.options import TrainingOptions


@dataclass(frozen=True)
class Checkpoint:
    """All that a training run needs to go on: weights, optimiser state, options, history."""

    model: nn.Module
    optimizers: Sequence[torch.optim.Optimizer]
    options: TrainingOptions
    history: list[dict[str, Any]]


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


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write the state after an epoch; see :func:`read_checkpoint`."""
    tensors = {f"model.{name}": value for name, value in checkpoint.model.state_dict().items()}
    for position, optimizer in enumerate(checkpoint.optimizers):
        for index, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                tensors[f"optimizer.{position}.{index}.{name}"] = value
    metadata = {
        "options": json.dumps(checkpoint.options.model_dump()),
        "history": json.dumps(checkpoint.history),
    }
    write_tensors(path, tensors, metadata)


def read_checkpoint(
    path: Path,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    options: TrainingOptions,
) -> list[dict[str, Any]]:
    """Restore model and optimisers in place; returns the history so far.

    Raises:
        ValueError: a damaged file, or a checkpoint of other training options or another model.
    """
    try:
        tensors, metadata = read_tensors(path)
    except ValueError as error:
        raise ValueError(f"{error}; delete it to start again") from None
    if not {"options", "history"} <= set(metadata):
        raise ValueError(f"{path} is not a checkpoint; delete it to start again")
    stored = json.loads(metadata["options"])
    given = options.model_dump()
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
    history: list[dict[str, Any]] = json.loads(metadata["history"])
    return history


def _restore(
    tensors: dict[str, Tensor], model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]
) -> None:
    """Load the tensors of a checkpoint into model and optimisers."""
    model.load_state_dict(
        {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
    )
    for position, optimizer in enumerate(optimizers):
        state: dict[int, dict[str, Tensor]] = {}
        prefix = f"optimizer.{position}."
        for name, value in tensors.items():
            if name.startswith(prefix):
                index, key = name.removeprefix(prefix).split(".", 1)
                state.setdefault(int(index), {})[key] = value
        optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
