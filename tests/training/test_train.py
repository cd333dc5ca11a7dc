"""What training takes: data that fit the model, judged before the first step."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from torch import Tensor

import unitmargin as um
from unitmargin.data import Dataset, Samples
from unitmargin.training.checkpoint import read_checkpoint
from unitmargin.training.options import TrainingOptions
from unitmargin.training.processes import Processes
from unitmargin.training.trainer import Trainer

X, Y = torch.rand(12, 2), torch.arange(12) % 3

FRAME = pandas.DataFrame(X.numpy(), columns=["a", "b"], index=range(12, 0, -1))

PAIRS: dict[str, tuple[Any, Any]] = {
    "arrays": (X.numpy(), Y.numpy()),
    "wide arrays": (X.double().numpy(), Y.numpy().astype(np.uint8)),
    "frame and series": (FRAME, pandas.Series(Y.numpy(), index=range(12))),
    "graph": (X.clone().requires_grad_(True), Y),
    "transposed": (X.T.contiguous().T, Y),
}


def model() -> um.DenseUGNN:
    torch.manual_seed(0)
    return um.DenseUGNN((2,), 3, hidden=(2,))


def trained(data: Any, test: Any = None, **options: Any) -> um.DenseUGNN:
    network = model()
    um.train(network, data, test or data, epochs=2, batch_size=5, quiet=True, **options)
    return network


@pytest.mark.parametrize("kind", PAIRS)
def test_pairs_of_every_kind_train_the_same_network(kind: str) -> None:
    expected, found = trained((X, Y)).state_dict(), trained(PAIRS[kind]).state_dict()
    for name, value in expected.items():
        assert torch.equal(value, found[name]), name


@pytest.mark.parametrize("scale", [3.0, 100.0])
def test_the_domain_holds_all_samples_and_is_kept_in_a_checkpoint(
    scale: float, tmp_path: Path
) -> None:
    """That of the training samples where it holds the test samples, else wider."""
    file = tmp_path / "checkpoint.safetensors"
    wide = (4.0 * torch.cat((X, torch.tensor([[1.0, 0.0]]))) - 2.0, torch.cat((Y, Y[:1])))
    test = scale * X, Y
    network = trained(wide, test, checkpoint=file)
    low, high = float(wide[0].min()), float(wide[0].max())
    if float(test[0].max()) > high + (high - low):
        high = float(test[0].max())
    assert network.domain.dtype == torch.float64
    assert network.domain.tolist() == [low - (high - low), high + (high - low)]
    assert "domain" in network.state_dict()
    resumed = model()
    um.train(resumed, wide, test, epochs=2, batch_size=5, quiet=True, checkpoint=file)
    assert torch.equal(resumed.domain, network.domain)


def test_bytes_have_the_domain_of_their_scale() -> None:
    pixels = torch.tensor([[0, 9], [30, 200]], dtype=torch.uint8)
    labels = torch.tensor([0, 1])
    assert trained(Samples(pixels, labels, 255.0)).domain.tolist() == [0.0, 1.0]
    assert trained(Samples(pixels, labels)).domain.tolist() == [0.0, 255.0]


WRONG: dict[str, tuple[Tensor, Tensor, str]] = {
    "a label beyond the classes": (
        X, Y + 1,
        " must hold labels below 3, the number of classes of the model, got 3 in sample 2; count "
        "from 0, or build a model of more classes",
    ),
    "a negative label": (X, Y - 1, ": labels must be >= 0, got -1; count classes from 0"),
    "another shape": (
        X[:, :1], Y,
        " must hold inputs of shape (2,), that of the model, got (1,); resize them, or build a "
        "model for them",
    ),
    "images": (
        X[:, :, None, None], Y,
        " must hold inputs of shape (2,), that of the model, got (2, 1, 1); resize them, or build "
        "a model for them",
    ),
    "no sample": (
        X[:0], Y[:0],
        ": inputs must have shape (n, *shape) and hold at least one number, got (0, 2); pass a "
        "sample at least",
    ),
    "no batch axis": (
        X[0], Y[0],
        ": inputs must have shape (n, *shape) and hold at least one number, got (2,); add the "
        "batch axis: inputs[None]",
    ),
    "too few labels": (
        X, Y[:5],
        ": labels must be int64 of shape (12,), one for each input, got torch.int64 of shape (5,); "
        "pass the number of each class",
    ),
    "a missing value": (
        X / 0.0,
        Y,
        ": inputs must be finite in float32, got NaN or infinity in sample 0; remove or repair it, "
        "or write it in a larger unit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("name", ["train_data", "test_data"])
def test_data_that_do_not_fit_are_refused_before_the_first_step(
    name: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    *data, rule = WRONG[case]
    monkeypatch.setattr(Trainer, "epoch", None)  # whoever calls it fails
    pairs = {"train_data": (X, Y), "test_data": (X, Y)} | {name: tuple(data)}
    network = model()
    before = {key: value.clone() for key, value in network.state_dict().items()}
    with pytest.raises(ValueError, match=f"^{re.escape(name + rule)}$"):
        um.train(network, **pairs, quiet=True)
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (Y.float(), ValueError, "labels of train_data must be of an integer dtype"),
        (Y.bool(), ValueError, "labels of train_data must be of an integer dtype"),
        (np.array(["a"] * 12), TypeError, "labels of train_data must hold real numbers"),
        (pandas.Series(["a"] * 12), TypeError, "labels of train_data must hold real numbers"),
    ],
)
def test_labels_that_are_no_numbers_of_classes_are_refused(
    labels: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        um.train(model(), (X, labels), (X, Y))


def test_a_missing_value_is_named_by_its_row() -> None:
    frame = FRAME.astype(float)
    frame.iloc[7, 1] = None
    with pytest.raises(ValueError, match=r"train_data: inputs must be finite.* in sample 7;"):
        um.train(model(), (frame, Y), (X, Y))


@pytest.mark.parametrize("options", [{"checkpoint": "."}, {"epochs": -1}, {"device": "cpu:x"}])
def test_other_arguments_are_judged_before_the_first_step(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trainer, "epoch", None)
    use: Callable[..., Any] = um.train
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        use(model(), (X, Y), (X, Y), **options)


def test_gradients_that_the_model_has_are_not_taken_in() -> None:
    clean = model()
    used = copy.deepcopy(clean)
    used(torch.rand(8, 2)).square().sum().backward()
    for network in (clean, used):
        um.train(network, (X, Y), epochs=1, batch_size=8, optimizer="sgd", quiet=True)
    for one, other in zip(clean.parameters(), used.parameters(), strict=True):
        assert torch.equal(one, other)


class Stop(Exception):
    """Ends a training after an epoch."""


def shortened(file: Path, test: Any = None) -> tuple[um.DenseUGNN, list[Any]]:
    """A training of many epochs that is interrupted after three, and ended there."""
    test = (X, Y) if test is None else test
    options = {"schedule": "constant", "evaluate_every": 10, "checkpoint": file, "quiet": True}

    def stop(history: Any) -> None:
        if len(history) == 4:
            raise Stop

    with pytest.raises(Stop):
        um.train(model(), (X, Y), test, epochs=20, after_epoch=stop, **options)
    network, told = model(), []
    um.train(network, (X, Y), test, epochs=3, after_epoch=told.append, **options)
    um.train(model(), (X, Y), test, epochs=3, after_epoch=told.append, **options)
    return network, told


def test_the_last_epoch_of_a_shortened_training_is_evaluated(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.safetensors"
    network, told = shortened(file)
    assert len(told) == 1
    (history,) = told
    assert [record.evaluated for record in history] == [False, False, True]
    clean = (network(X).argmax(1) == Y).double().mean()
    assert history[-1].clean_accuracy == float(clean)
    whole = model()
    um.train(whole, (X, Y), (X, Y), epochs=3, schedule="constant", quiet=True)
    assert all(torch.equal(v, whole.state_dict()[k]) for k, v in network.state_dict().items())
    assert read_checkpoint(file).history[-1]["clean_accuracy"] == float(clean)


def test_epochs_are_refused_beside_steps() -> None:
    rule = "epochs must be left out where steps are given, got 2 and steps = 5; set steps to 0"
    with pytest.raises(ValueError, match=rule):
        um.train(model(), (X, Y), epochs=2, steps=5, quiet=True)
    options = TrainingOptions(steps=5)
    with pytest.raises(ValueError, match=rule):
        um.train(model(), (X, Y), None, options, epochs=2, quiet=True)
    result = um.train(model(), (X, Y), None, options, epochs=2, steps=0, quiet=True)
    assert len(result.history) == 2


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_whoever_calls_it_without_gradients_trains(mode: Callable[[], Any]) -> None:
    network = model()
    before = [parameter.detach().clone() for parameter in network.parameters()]
    with mode():
        um.train(network, (X, Y), epochs=1, quiet=True)
    after = list(network.parameters())
    assert not all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("evaluate_every", [1, 2])
def test_weights_that_are_orthogonal_no_more_end_a_training(
    tmp_path: Path, evaluate_every: int
) -> None:
    """A loss may be finite all the while; what is kept is of the epoch before."""
    file = tmp_path / "checkpoint.safetensors"
    network = um.DenseUGNN((2,), 3, hidden=(2,), linear="manifold")

    def lengthen(history: Any) -> None:
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(3.0)

    options = {"epochs": 3, "evaluate_every": evaluate_every, "quiet": True, "checkpoint": file}
    with pytest.raises(FloatingPointError, match="must stay orthogonal to 0.01, got .* epoch 2"):
        um.train(network, (X, Y), (X, Y), after_epoch=lengthen, **options)
    assert len(read_checkpoint(file).history) == 1


def test_the_mode_afterwards_is_that_of_evaluation(tmp_path: Path) -> None:
    seen: list[Any] = []
    for _ in range(2):
        network = model()
        file = tmp_path / "checkpoint.safetensors"
        um.train(network, (X, Y), epochs=2, checkpoint=file, quiet=True, after_epoch=seen.append)
        assert not network.training
    assert [len(history) for history in seen] == [1, 2]


def test_a_checkpoint_that_cannot_be_written_is_judged_before_the_first_step(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    net, data = model(), (torch.rand(8, *model().in_shape), torch.arange(8) % 2)
    before = [parameter.detach().clone() for parameter in net.parameters()]
    with pytest.raises(OSError, match="File exists|Not a directory"):
        um.train(net, data, checkpoint=tmp_path / "file/c.safetensors", epochs=1, quiet=True)
    assert all(map(torch.equal, before, net.parameters()))


@pytest.mark.parametrize("linear", ["manifold", "cholesky"])
def test_autocast_around_a_training_changes_nothing(linear: str) -> None:
    """Weights are kept and moved in float32."""

    def trained() -> dict[str, torch.Tensor]:
        torch.manual_seed(0)
        model = um.DenseUGNN((8,), 3, linear=linear, head="manifold")
        x, y = torch.randn(64, 8), torch.arange(64) % 3
        um.train(model, (x, y), epochs=2, batch_size=16, quiet=True)
        return dict(model.state_dict())

    expected = trained()
    with torch.autocast("cpu", torch.bfloat16):
        found = trained()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_a_model_that_is_not_of_float32_is_refused_before_anything_changes() -> None:
    model = um.DenseUGNN((2,), 2).double()
    before = model.domain.clone()
    with pytest.raises(ValueError, match=r"float32 parameters .* got torch.float64; call model.fl"):
        um.train(model, (torch.rand(8, 2), torch.arange(8) % 2), epochs=1, quiet=True)
    assert torch.equal(model.domain, before)


def test_processes_that_see_different_checkpoints_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One would average gradients of two models."""
    data = torch.rand(8, 2), torch.arange(8) % 2
    options: dict[str, Any] = {"checkpoint": tmp_path / "a", "quiet": True}
    um.train(um.DenseUGNN((2,), 2), data, epochs=2, schedule="constant", **options)
    monkeypatch.setattr(Processes, "gather", lambda _, own: [*own, 0])
    with pytest.raises(ValueError, match="same for all processes, got one of 2 and 0 epochs; put"):
        um.train(um.DenseUGNN((2,), 2), data, epochs=3, schedule="constant", **options)


def test_classes_are_those_of_the_data_set_or_one_name_each(tmp_path: Path) -> None:
    x, y = torch.rand(9, 2), torch.arange(9) % 3
    animals = Dataset("pets", Samples(x, y), Samples(x, y), ("cat", "dog", "owl"))
    options: dict[str, Any] = {"quiet": True, "checkpoint": tmp_path / "a", "schedule": "constant"}
    um.train(um.DenseUGNN((2,), 3), animals, epochs=1, **options)
    assert read_checkpoint(tmp_path / "a").state.identity.data.classes == ["cat", "dog", "owl"]
    turned = Dataset("pets", Samples(x, y), Samples(x, y), ("owl", "cat", "dog"))
    with pytest.raises(ValueError, match="class names of the data must be those of"):
        um.train(um.DenseUGNN((2,), 3), turned, epochs=2, **options)
    for names in (("a", "b"), ("a", "a", "b"), "abc"):
        with pytest.raises(ValueError, match="classes must be 3 different names, got"):
            um.train(um.DenseUGNN((2,), 3), (x, y), epochs=1, quiet=True, classes=names)
