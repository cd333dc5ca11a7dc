"""Checkpoints and weights: exact round trips, and files that are refused."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from unitmargin.models import UGNN, Classifier, DenseUGNN
from unitmargin.training.checkpoint import (
    read_checkpoint,
    read_weights,
    write_checkpoint,
    write_weights,
)
from unitmargin.training.optimizers import build_optimizers
from unitmargin.training.options import TrainingOptions

OPTIONS = TrainingOptions(epochs=3)


def conv_model() -> Classifier:
    """All kinds of parameters: free, real and complex on the manifold."""
    return UGNN((1, 4, 4), 3, depth=1, conv="manifold", linear="manifold", kernel_size=5)


def step(model: Classifier, optimizers: list[torch.optim.Optimizer], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(8, *model.in_shape, generator=generator)
    nn.functional.cross_entropy(model(x), torch.arange(8) % model.n_classes).backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def save_one(path: Path) -> tuple[Classifier, list[torch.optim.Optimizer]]:
    model = conv_model()
    optimizers = build_optimizers(model, 1e-2, 1e-2)
    for seed in range(3):
        step(model, optimizers, seed)
    write_checkpoint(path, model, optimizers, OPTIONS, [{"epoch": 1, "loss": 0.1}])
    return model, optimizers


def test_a_restored_run_takes_the_same_steps(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    model, optimizers = save_one(path)
    assert len(optimizers) == 2
    other = conv_model()
    restored = build_optimizers(other, 1e-2, 1e-2)
    history = read_checkpoint(path, other, restored, OPTIONS)
    assert history == [{"epoch": 1, "loss": 0.1}]
    assert same(model.state_dict(), other.state_dict())
    for mine, its in zip(optimizers, restored, strict=True):
        for state, again in zip(mine.state.values(), its.state.values(), strict=True):
            assert {k: v.dtype for k, v in state.items()} == {k: v.dtype for k, v in again.items()}
            assert same(state, again)
    for seed in range(3, 6):
        step(model, optimizers, seed)
        step(other, restored, seed)
    assert same(model.state_dict(), other.state_dict())


def test_nothing_is_left_aside(tmp_path: Path) -> None:
    save_one(tmp_path / "deep" / "checkpoint.safetensors")
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["checkpoint.safetensors"]


def test_other_options_are_named(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_one(path)
    model = conv_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    changed = OPTIONS.changed(epochs=4, learning_rate=0.5)
    with pytest.raises(ValueError, match=r"other training options \(epochs, learning_rate\)"):
        read_checkpoint(path, model, build_optimizers(model, 1e-2, 1e-2), changed)
    assert same(before, model.state_dict())


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_checkpoint_is_damaged(tmp_path: Path, share: float) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_one(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    model = conv_model()
    with pytest.raises(ValueError, match="is damaged .*delete it to start again"):
        read_checkpoint(path, model, build_optimizers(model, 1e-2, 1e-2), OPTIONS)


def test_another_safetensors_file_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_file({"weight": torch.zeros(2)}, path)
    model = conv_model()
    with pytest.raises(ValueError, match="is not a checkpoint; delete it to start again"):
        read_checkpoint(path, model, build_optimizers(model, 1e-2, 1e-2), OPTIONS)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_one(path)
    model = DenseUGNN((4,), 3)
    with pytest.raises(ValueError, match="(?s)is of another model.*delete it to start again"):
        read_checkpoint(path, model, build_optimizers(model, 1e-2, 1e-2), OPTIONS)


def test_weights_round_trip_with_their_origin(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    model, other = DenseUGNN((6,), 4), DenseUGNN((6,), 4)
    write_weights(path, model, {"commit": "abc"})
    assert read_weights(path, other) == {"commit": "abc"}
    assert same(model.state_dict(), other.state_dict())


@pytest.mark.parametrize("damage", ["truncated", "missing", "surplus", "shape"])
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "weights.safetensors"
    write_weights(path, DenseUGNN((6,), 4), {})
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:200])
    else:
        tensors = load_file(path)
        name = next(iter(tensors))
        changed = {"missing": {}, "surplus": {"new": torch.zeros(1)}, "shape": {}}[damage]
        if damage == "missing":
            del tensors[name]
        if damage == "shape":
            tensors[name] = torch.zeros(7)
        save_file(tensors | changed, path)
    with pytest.raises(ValueError, match="(?s)does not fit the recipe's model.*train again"):
        read_weights(path, DenseUGNN((6,), 4))
