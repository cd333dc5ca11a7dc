"""Activations that are computed again change no bit of a gradient, and leave nothing behind."""

from collections import Counter
from typing import Any

import pytest
import torch
from groups import in_group
from torch import Tensor

from unitmargin.data import load_dataset
from unitmargin.layers.faithful import require_faithful
from unitmargin.models import Classifier, build_model
from unitmargin.training.activations import recomputed_activations
from unitmargin.training.precision import training_precision
from unitmargin.training.train import train

KINDS: dict[str, dict[str, Any]] = {
    "dense_ugnn": {"linear": "manifold"},
    "ugnn": {"conv": "cayley", "linear": "bjorck", "depth": 2, "hidden": [16]},
    "mixing_ugnn": {"plan": ["fold 2", "reflect window 2", "pool 2", "group 4", "window 1"]},
    "resnet9": {"width": 4},
    "lip_convnet5": {"width": 4},
    "large_convnet": {"width": 4},
}


def network(kind: str) -> Classifier:
    torch.manual_seed(0)
    return build_model(kind, (1, 16, 16), 4, **KINDS[kind])


def gradients(model: Classifier, precision: str, again: bool) -> list[Tensor]:
    """The loss and its gradient."""
    generator = torch.Generator().manual_seed(1)
    inputs, labels = torch.rand(6, *model.in_shape, generator=generator), torch.arange(6) % 4
    with training_precision(precision, torch.device("cpu")), recomputed_activations(model, again):
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
    return [loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_equal_to_the_last_bit(kind: str, precision: str) -> None:
    kept, again = (gradients(network(kind), precision, how) for how in (False, True))
    assert len(kept) == len(again) > 1
    assert all(torch.equal(*pair) for pair in zip(kept, again, strict=True))


def evaluations(model: Classifier, again: bool) -> list[int]:
    """How often each hidden layer is evaluated in a step."""
    calls: Counter[int] = Counter()
    for place, layer in enumerate(model.features):
        layer.register_forward_hook(lambda *_, place=place: calls.update([place]))
    gradients(model, "float32", again)
    return [calls[place] for place in range(len(model.features))]


def test_hidden_layers_are_evaluated_twice_but_for_those_of_the_last_run() -> None:
    layers = len(network("ugnn").features)
    assert layers == 14
    assert evaluations(network("ugnn"), again=False) == [1] * layers
    again = evaluations(network("ugnn"), again=True)
    # Four runs, of three layers each and the last of five. A run's last layer keeps nothing here.
    assert again == [2, 2, 1] * 3 + [1] * 5


def test_a_layer_that_stands_at_two_places_is_evaluated_at_both() -> None:
    def model() -> Classifier:
        one = network("dense_ugnn")
        one.features.insert(2, one.features[1])
        return one

    kept, again = (gradients(model(), "float32", how) for how in (False, True))
    assert all(torch.equal(*pair) for pair in zip(kept, again, strict=True))


def test_nothing_is_left_behind_also_by_an_error() -> None:
    model = network("mixing_ugnn")
    with recomputed_activations(model):
        assert "forward" in vars(model.features)
    assert "forward" not in vars(model.features)
    with pytest.raises(RuntimeError, match="stop"), recomputed_activations(model):
        raise RuntimeError("stop")
    assert "forward" not in vars(model.features)
    require_faithful(model)
    with recomputed_activations(model, wanted=False):
        require_faithful(model)


OPTIONS: dict[str, Any] = {"epochs": 2, "batch_size": 60}


def weights(**changes: Any) -> dict[str, list[Any]]:
    torch.manual_seed(0)
    model = build_model("mixing_ugnn", (1, 8, 8), 10, plan=["fold 2", "window 2", "group 4"])
    train(model, load_dataset("digits", limit=203), quiet=True, **OPTIONS | changes)
    return {name: value.tolist() for name, value in model.state_dict().items()}


@pytest.mark.usefixtures("multiplied")
@pytest.mark.parametrize("options", [{}, {"precision": "bfloat16"}, {"pieces": 4}])
def test_a_training_ends_with_the_same_weights(options: dict[str, Any]) -> None:
    assert weights(recompute_activations=True, **options) == weights(**options)


@pytest.mark.parametrize("pieces", [1, 2])
def test_processes_compute_activations_again(pieces: int) -> None:
    kept = in_group(2, lambda: weights(pieces=pieces, epochs=1))
    again = in_group(2, lambda: weights(pieces=pieces, epochs=1, recompute_activations=True))
    assert again == kept
