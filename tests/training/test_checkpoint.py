"""Checkpoints: exact round trips, and files that are refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import unitmargin as um
from unitmargin.foundation.tensors import read_tensors
from unitmargin.models import (
    UGNN,
    Classifier,
    DenseUGNN,
    MixingUGNN,
    describe_network,
    without_settings,
)
from unitmargin.training.checkpoint import STATE, State, read_checkpoint, write_checkpoint
from unitmargin.training.identity import DataIdentity, Identity, require_same_training
from unitmargin.training.optimizers import build_optimizers
from unitmargin.training.options import TrainingOptions

DATA = DataIdentity(train_sha256="a", test_sha256="b", classes=["cat", "dog", "owl"])

SAMPLES = 512
"""Two steps an epoch."""


def conv_model() -> Classifier:
    """All kinds of parameters: free, real and complex on the manifold."""
    return UGNN((1, 4, 4), 3, depth=1, conv="manifold", linear="manifold", kernel_size=5)


def identity_of(model: Classifier, schedule: str = "linear") -> Identity:
    options = TrainingOptions(epochs=3, schedule=schedule)
    return Identity(data=DATA, network=describe_network(model), options=options)


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
    state = State(identity=identity_of(model), history=[{"epoch": 1, "loss": 0.1}])
    write_checkpoint(path, model, optimizers, state)
    return model, optimizers


def test_a_restored_run_takes_the_same_steps(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    model, optimizers = save_one(path)
    assert len(optimizers) == 2
    other = conv_model()
    restored = build_optimizers(other, 1e-2, 1e-2)
    checkpoint = read_checkpoint(path)
    checkpoint.require(identity_of(other), SAMPLES)
    checkpoint.restore(other, restored)
    assert checkpoint.history == [{"epoch": 1, "loss": 0.1}]
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


def other_data(identity: Identity, **changes: object) -> Identity:
    return identity.changed(data=changes)


DIFFERENT: dict[str, tuple[Callable[[Identity], Identity], str]] = {
    "training samples": (
        lambda identity: other_data(identity, train_sha256="c"),
        "is of other training samples: their SHA-256 is a, not c; pass the data",
    ),
    "test samples": (
        lambda identity: other_data(identity, test_sha256="c"),
        "is of other test samples: their SHA-256 is b, not c; pass the data",
    ),
    "class names": (
        lambda identity: other_data(identity, classes=["cat", "dog", "rat"]),
        "class names of the data must be those of .*, cat, dog, owl, got cat, dog, rat; rename",
    ),
    "a layer": (
        lambda identity: identity.changed(
            network=identity.network | {"features.1": "CayleyConv2d"}
        ),
        "is of another model: features.1 is Abs, not CayleyConv2d; go on as it was begun",
    ),
    "one layer more": (
        lambda identity: identity.changed(network=identity.network | {"features.99": "Abs"}),
        "is of another model: features.99 is nothing, not Abs",
    ),
    "an option": (
        lambda identity: identity.changed(options={"learning_rate": 0.5}),
        "was trained with learning_rate = 0.003, not 0.5; go on as it was begun",
    ),
    "more epochs of a schedule that depends on their number": (
        lambda identity: identity.changed(options={"epochs": 4}),
        "holds 2 steps of a training of 6, which under the schedule 'linear' are no part of one "
        "of 8; go on as it was begun, .* under the schedule 'constant'",
    ),
    "fewer steps than were made": (
        lambda identity: identity.changed(options={"steps": 1}),
        "holds 2 steps of a training of 6, more than the 1 of the one that is asked for; go on",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    change, message = DIFFERENT[name]
    model, _ = save_one(path)
    with pytest.raises(ValueError, match=message):
        read_checkpoint(path).require(change(identity_of(model)), SAMPLES)


def test_a_training_that_ended_within_an_epoch_is_not_extended() -> None:
    identity = identity_of(conv_model(), "constant")
    stored, given = (identity.changed(options={"steps": steps}) for steps in (3, 8))
    with pytest.raises(ValueError, match="holds 3 steps of a training of 3, whose last epoch is"):
        require_same_training(Path("file"), stored, 2, given, SAMPLES)


def test_stored_words_without_settings_are_of_either_network() -> None:
    """So a training of mixing layers goes on that was stored without them."""
    models = [MixingUGNN((1, 4, 4), 3, plan=["fold 2", f"window 2 {shift}"]) for shift in (0, 1)]
    mine, other = map(identity_of, models)
    with pytest.raises(ValueError, match="is of another model: features.1 is OrthogonalMixing .*"):
        mine.require(other, Path("file"))
    stored = {name: without_settings(words) for name, words in mine.network.items()}
    assert stored != mine.network
    for each in (mine, other):
        mine.changed(network=stored).require(each, Path("file"))
    unlike = stored | {"features.1": stored["features.1"].replace("16", "17")}
    with pytest.raises(ValueError, match="is of another model: features.1"):
        mine.changed(network=unlike).require(mine, Path("file"))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_checkpoint_is_damaged(tmp_path: Path, share: float) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_one(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="is damaged .*delete it to start again"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (None, "is no checkpoint; pass the path of one"),  # a model that was shipped, perhaps
        ({"training": "[]"}, "no checkpoint of this version .*delete it to start again"),
        ({"training": "{}"}, "no checkpoint of this version .*delete it to start again"),
        ({"training": "{"}, "no checkpoint of this version .*delete it to start again"),
    ],
)
def test_another_safetensors_file_is_no_checkpoint(
    header: dict[str, str] | None, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_file({"weight": torch.zeros(2)}, path, metadata=header)
    with pytest.raises(ValueError, match=words):
        read_checkpoint(path)


ROW = {"epoch": 1, "loss": 0.1, "clean_accuracy": None, "certified_accuracy": None} | {
    "orthogonality_error": None, "learning_rate": 0.1, "seconds": 1.0
}  # fmt: skip


@pytest.mark.parametrize(
    "row", [ROW | {"colour": 1.0}, {"epoch": 1, "loss": 0.1}, ROW | {"loss": "0.1"}]
)
def test_rows_of_another_history_are_no_checkpoint(row: dict[str, Any], tmp_path: Path) -> None:
    path, x, y = tmp_path / "checkpoint.safetensors", torch.rand(8, 2), torch.arange(8) % 2
    for epochs in (1, 2):
        model = DenseUGNN((2,), 2, hidden=(2,))
        given = {"epochs": epochs, "schedule": "constant", "quiet": True, "checkpoint": path}
        if epochs == 1:
            um.train(model, (x, y), **given)
            edited(path, lambda state: state | {"history": [row]})
            continue
        with pytest.raises(ValueError, match="is no checkpoint of this version .*; delete it"):
            um.train(model, (x, y), **given)


def edited(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change what a checkpoint says beside its tensors."""
    tensors, words = read_tensors(path)
    save_file(tensors, path, metadata={STATE: json.dumps(change(json.loads(words[STATE])))})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("model.head.raw", torch.zeros(7), r"head.raw is of shape \(7,\), not of shape \(3, 4\)"),
        ("model.more", torch.zeros(1), r"more is of shape \(1,\), not nothing"),
        ("optimizer.0.0.exp_avg", torch.zeros(7), r"exp_avg of parameter 0 of optimiser 0 is of"),
        ("optimizer.1.99.momentum", torch.zeros(7), "list index out of range"),
        ("optimizer.1.x.momentum", torch.zeros(7), "invalid literal for int"),
    ],
)
def test_a_refused_checkpoint_leaves_all_as_it_was(
    name: str, value: Tensor, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_one(path)
    tensors, words = read_tensors(path)
    assert name.startswith(("model.", "optimizer."))
    save_file(tensors | {name: value}, path, metadata=words)
    model = conv_model()
    optimizers = build_optimizers(model, 1e-2, 1e-2)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with pytest.raises(ValueError, match=f"is of another model .*{message}.*; delete it"):
        read_checkpoint(path).restore(model, optimizers)
    assert same(before, model.state_dict())
    assert not any(optimizer.state for optimizer in optimizers)


def test_tensors_of_another_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_one(path)
    model = DenseUGNN((4,), 3)
    with pytest.raises(
        ValueError, match="must be of a training of the same .*delete it to start again"
    ) as error:
        read_checkpoint(path).restore(model, build_optimizers(model, 1e-2, 1e-2))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "change", [lambda model: model.head.requires_grad_(False), lambda model: model.double()]
)
def test_other_parameters_that_are_trained_are_refused(
    change: Callable[[Classifier], object], tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_one(path)
    model = conv_model()
    change(model)
    with pytest.raises(ValueError, match="must be of a training of the same parameters"):
        read_checkpoint(path).restore(model, build_optimizers(model, 1e-2, 1e-2))
