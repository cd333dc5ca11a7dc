"""Checkpoints as safetensors: exact resume without pickle."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from unitmargin.foundation.failures import one_line
from unitmargin.foundation.files import parse_json
from unitmargin.foundation.options import Options
from unitmargin.foundation.tensors import read_tensors, write_tensors
from unitmargin.training.identity import ABSENT, Identity, require_same_training

Optimizers = Sequence[torch.optim.Optimizer]
History = list[dict[str, Any]]

STATE = "training"
"""Entry of the header that holds all but the tensors."""


class State(Options):
    """All of a checkpoint but its tensors."""

    identity: Identity
    history: History
    trained: list[str] | None = None
    """Parameters that are trained, each with its type; None in files of before."""


class Checkpoint:
    """A training after a whole epoch: its state, and the tensors of model and optimisers."""

    def __init__(self, path: Path, state: State, tensors: dict[str, Tensor]) -> None:
        self.path, self.state, self.tensors = path, state, tensors

    @property
    def history(self) -> History:
        """One record an epoch."""
        return self.state.history

    def require(self, identity: Identity, samples: int) -> None:
        """Raise a ValueError unless it may go on as this training of so many samples."""
        stored, epochs = self.state.identity, len(self.history)
        require_same_training(self.path, stored, epochs, identity, samples)

    def restore(self, model: nn.Module, optimizers: Optimizers) -> None:
        """Put the state of model and optimisers in place; of a refused file nothing is.

        Raises:
            ValueError: another model, or other parameters that are trained.
        """
        stored, trained = self.state.trained, trained_parameters(model)
        if stored is not None and stored != trained:
            raise ValueError(
                f"{self.path} must be of a training of the same parameters, got one in which "
                f"{min({*stored} ^ {*trained}, default='their order')} differs; set requires_grad "
                "and type as they were, or delete it to start again"
            )
        try:
            weights = self._weights(model)
            states = [self._state(*numbered) for numbered in enumerate(optimizers)]
        except (ValueError, LookupError) as error:
            reason = one_line(str(error))
            raise ValueError(
                f"{self.path} is of another model ({reason}); delete it to start again"
            ) from None
        model.load_state_dict(weights)
        for optimizer, state in zip(optimizers, states, strict=True):
            optimizer.load_state_dict(optimizer.state_dict() | {"state": state})

    def _weights(self, model: nn.Module) -> dict[str, Tensor]:
        """The tensors of a model, each of the name and shape of one of its own."""
        stored, own = self._below("model."), model.state_dict()
        for name in {**own, **stored}:
            there, here = (t[name].shape if name in t else ABSENT for t in (stored, own))
            if there != here:
                raise ValueError(f"{name} is {_words(there)}, not {_words(here)}")
        return stored

    def _state(
        self, position: int, optimizer: torch.optim.Optimizer
    ) -> dict[int, dict[str, Tensor]]:
        """The state of an optimiser: numbers, and tensors of the shapes of its parameters."""
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in self._below(f"optimizer.{position}.").items():
            index, key = name.split(".", 1)
            shape = parameters[int(index)].shape
            if value.ndim and value.shape != shape:
                where = f"{key} of parameter {index} of optimiser {position}"
                raise ValueError(f"{where} is {_words(value.shape)}, not {_words(shape)}")
            state.setdefault(int(index), {})[key] = value
        return state

    def _below(self, prefix: str) -> dict[str, Tensor]:
        named = self.tensors.items()
        return {k.removeprefix(prefix): v for k, v in named if k.startswith(prefix)}


def _words(shape: torch.Size | str) -> str:
    return shape if isinstance(shape, str) else f"of shape {tuple(shape)}"


def trained_parameters(model: nn.Module) -> list[str]:
    """The parameters of a model that are trained, each with its type, in their order.

    Example:
        >>> trained_parameters(nn.Linear(2, 3, bias=False))
        ['weight torch.float32']
    """
    named = model.named_parameters()
    return [f"{name} {parameter.dtype}" for name, parameter in named if parameter.requires_grad]


def write_checkpoint(path: Path, model: nn.Module, optimizers: Optimizers, state: State) -> None:
    """Write all that a training needs to go on after an epoch; see :func:`read_checkpoint`."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for position, optimizer in enumerate(optimizers):
        for index, values in optimizer.state_dict()["state"].items():
            for name, value in values.items():
                tensors[f"optimizer.{position}.{index}.{name}"] = value
    known = state.model_copy(update={"trained": trained_parameters(model)})
    write_tensors(path, tensors, {STATE: json.dumps(known.model_dump())})


def read_checkpoint(path: Path, record: Callable[..., Any] = dict) -> Checkpoint:
    """Read what :func:`write_checkpoint` wrote.

    Args:
        record: the dataclass of a row of the history; by default rows are not judged.

    Raises:
        ValueError: a damaged file, or one that is no checkpoint of this version.
    """
    try:
        tensors, words = read_tensors(path)
    except ValueError as error:
        raise ValueError(f"{error}; delete it to start again") from None
    if STATE not in words:
        raise ValueError(f"{path} is no checkpoint; pass the path of one, or of a file to be made")
    try:
        state: Any = parse_json(words[STATE])
        known = State(**state)
        _require_rows(known.history, record)
        return Checkpoint(path, known, tensors)
    except (TypeError, ValueError) as error:
        reason = one_line(str(error))
        raise ValueError(
            f"{path} is no checkpoint of this version ({reason}); delete it to start again"
        ) from None


def _require_rows(history: History, record: Callable[..., Any]) -> None:
    """Raise unless all rows have the columns of a record, and numbers of their types."""
    for row in history:
        record(**row)
    TypeAdapter(list[record]).validate_json(json.dumps(history), strict=True)  # type: ignore[valid-type]
