"""Checkpoints as safetensors: exact resume without pickle."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unitmargin.foundation.failures import one_line
from unitmargin.foundation.files import parse_json
from unitmargin.foundation.options import Options
from unitmargin.foundation.tensors import read_tensors, write_tensors
from unitmargin.training.identity import Identity, require_same_training

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
        """Put the state of model and optimisers in place.

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
            self._restore(model, optimizers)
        except (RuntimeError, ValueError, LookupError) as error:
            reason = one_line(str(error))
            raise ValueError(
                f"{self.path} is of another model ({reason}); delete it to start again"
            ) from None

    def _restore(self, model: nn.Module, optimizers: Optimizers) -> None:
        def below(prefix: str) -> dict[str, Tensor]:
            named = self.tensors.items()
            return {k.removeprefix(prefix): v for k, v in named if k.startswith(prefix)}

        model.load_state_dict(below("model."))
        for position, optimizer in enumerate(optimizers):
            state: dict[int, dict[str, Tensor]] = {}
            for name, value in below(f"optimizer.{position}.").items():
                index, key = name.split(".", 1)
                state.setdefault(int(index), {})[key] = value
            optimizer.load_state_dict(optimizer.state_dict() | {"state": state})


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


def read_checkpoint(path: Path) -> Checkpoint:
    """Read what :func:`write_checkpoint` wrote.

    Raises:
        ValueError: a damaged file, or one that is no checkpoint of this version.
    """
    try:
        tensors, words = read_tensors(path)
    except ValueError as error:
        raise ValueError(f"{error}; delete it to start again") from None
    try:
        state: Any = parse_json(words.get(STATE, "null"))
        return Checkpoint(path, State(**state), tensors)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is no checkpoint of this version ({error}); delete it to start again"
        ) from None
