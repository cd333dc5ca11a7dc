"""A batch in pieces gives the same weights to the last bit, whoever computes which piece."""

from pathlib import Path
from typing import Any

import pytest
import torch
from groups import in_group
from torch.utils.data import DataLoader, TensorDataset

from unitmargin.data import load_dataset
from unitmargin.models import Classifier, build_model
from unitmargin.training.options import TrainingOptions
from unitmargin.training.pieces import Pieces, require_pieces
from unitmargin.training.processes import Processes
from unitmargin.training.sample_trainer import SampleTrainer
from unitmargin.training.share import Share
from unitmargin.training.train import train
from unitmargin.training.trainer import Trainer

ROUNDING = 1e-13
"""Gradients of pieces are added in another order than samples within a batch. In float64 that
moves weights by 1e-16 a step here; a lost, doubled or misweighted piece moves them by 1e-3."""

OPTIONS: dict[str, Any] = {"epochs": 2, "batch_size": 60, "crop": 1, "flip": True}

LIMIT = 203
"""Samples whose last batch has 23, which no number of pieces below divides."""

KINDS: dict[str, dict[str, Any]] = {
    "dense_ugnn": {"hidden": [32, 32], "linear": "manifold", "head": "simplex"},
    "mixing_ugnn": {"plan": ["fold 2", "window 2", "group 4"]},
}

Outcome = tuple[dict[str, list[Any]], list[float]]


def network(kind: str = "dense_ugnn") -> Classifier:
    torch.manual_seed(0)
    return build_model(kind, (1, 8, 8), 10, **KINDS[kind])


def trained(
    kind: str = "dense_ugnn", checkpoint: Path | None = None, stop: int = 99, **changes: Any
) -> Outcome:
    """Weights and losses after a training, which breaks off in an epoch."""

    def interrupt(history: Any) -> None:
        if len(history) == stop:
            raise InterruptedError

    model, dataset = network(kind), load_dataset("digits", limit=LIMIT)
    watched = {"checkpoint": checkpoint, "after_epoch": interrupt if stop < 99 else None}
    try:
        result = train(model, dataset, quiet=True, **watched, **OPTIONS | changes)
    except InterruptedError:
        return {}, []
    weights = {name: value.tolist() for name, value in model.state_dict().items()}
    return weights, [record.loss for record in result.history]


@pytest.mark.parametrize(("kind", "pieces"), [("dense_ugnn", 4), ("mixing_ugnn", 6)])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_any_number_of_processes_trains_the_same_bits(kind: str, pieces: int, count: int) -> None:
    one = trained(kind, pieces=pieces)
    assert in_group(count, lambda: trained(kind, pieces=pieces)) == [one] * count


@pytest.mark.parametrize(("begun", "resumed"), [(2, 3), (3, 1), (1, 4)])
def test_another_number_of_processes_resumes_to_the_same_bits(
    tmp_path: Path, begun: int, resumed: int
) -> None:
    file = tmp_path / "checkpoint.safetensors"
    in_group(begun, lambda: trained(checkpoint=file, stop=2, pieces=4))
    assert file.is_file()
    again = in_group(resumed, lambda: trained(checkpoint=file, pieces=4))
    assert again == [trained(pieces=4)] * resumed
