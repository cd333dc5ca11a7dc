"""Trained weights: exact round trips, and weights of something else are refused."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from unitmargin.data import Dataset, Samples
from unitmargin.models import Classifier, DenseUGNN, MixingUGNN
from unitmargin.runs.weights import origin_of, read_origin, read_weights, write_weights
from unitmargin.training.options import TrainingOptions

SAMPLES = Samples(torch.rand(4, 6), torch.arange(4))
DATASET = Dataset("four", SAMPLES, SAMPLES.take(3), ("a", "b", "c", "d"))


def written(path: Path, model: Classifier) -> Path:
    file = path / "weights.safetensors"
    write_weights(file, model, origin_of(model, DATASET, TrainingOptions(epochs=7)))
    return file


def test_weights_round_trip_with_their_origin(tmp_path: Path) -> None:
    model, other = DenseUGNN((6,), 4), DenseUGNN((6,), 4)
    file = written(tmp_path, model)
    read_weights(file, other)
    stored = model.state_dict()
    assert all(torch.equal(value, stored[name]) for name, value in other.state_dict().items())
    origin = read_origin(file)
    assert origin.in_shape == [6]
    assert origin.identity.options.epochs == 7
    assert origin.identity.data.classes == ["a", "b", "c", "d"]
    assert origin.identity.data.train_sha256 == SAMPLES.sha256
    assert set(origin.provenance) == {"hardware", "torch", "commit"}


def test_weights_of_another_network_name_the_first_layer_that_differs(tmp_path: Path) -> None:
    """Both have the same tensors: without their kinds the weights would fit."""
    model, other = DenseUGNN((6,), 4, linear="bjorck"), DenseUGNN((6,), 4, linear="cholesky")
    assert model.state_dict().keys() == other.state_dict().keys()
    message = "features.1 is BjorckLinear raw 6x6 bias 6, not CholeskyLinear raw 6x6 bias 6; go on"
    with pytest.raises(ValueError, match=message):
        read_weights(written(tmp_path, model), other)


def test_weights_of_another_arrangement_are_refused(tmp_path: Path) -> None:
    plans = (["fold 4", "window 2 0", "shift"], ["fold 4", "window 2 1", "window 1"])
    model, other = (MixingUGNN((1, 8, 8), 4, plan=plan) for plan in plans)
    assert {name: value.shape for name, value in model.state_dict().items()} == {
        name: value.shape for name, value in other.state_dict().items()
    }
    file = written(tmp_path, model)
    with pytest.raises(ValueError, match=r"is of another model: features.1 .*shift=0.*, not .*=1"):
        read_weights(file, other)
    read_weights(file, MixingUGNN((1, 8, 8), 4, plan=plans[0]))


@pytest.mark.parametrize("damage", ["truncated", "no origin", "missing", "surplus", "shape"])
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, damage: str) -> None:
    path = written(tmp_path, DenseUGNN((6,), 4))
    header = {"origin": read_origin(path).model_dump_json()}
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:200])
    else:
        tensors = load_file(path)
        name = next(iter(tensors))
        changed = {"surplus": {"new": torch.zeros(1)}}.get(damage, {})
        if damage == "missing":
            del tensors[name]
        if damage == "shape":
            tensors[name] = torch.zeros(7)
        metadata = None if damage == "no origin" else header
        save_file(tensors | changed, path, metadata=metadata)
    message = {
        "truncated": "is damaged or truncated",
        "no origin": "identity must be given, got nothing",
    }.get(damage, "does not fit the recipe's model: .*train again")
    with pytest.raises(ValueError, match=message) as error:
        read_weights(path, DenseUGNN((6,), 4))
    assert "\n" not in str(error.value)
