"""Freezing: the same function, exact weights, and deviations measured after rounding."""

import copy
from pathlib import Path

import pytest
import torch

from unitmargin.auditing.audit import audit
from unitmargin.auditing.gradients import unit_gradient_error
from unitmargin.data import load_dataset
from unitmargin.foundation.tensors import read_tensors, write_tensors
from unitmargin.frozen import CircularConvolution, Dense, load
from unitmargin.layers.normalize import Normalize
from unitmargin.models import Classifier, build_model
from unitmargin.models.freezing import freeze
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.runs.weights import read_weights
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.train import train_run
from unitmargin.training.options import TrainingOptions

FLOAT32_PROMISE = 3e-7
"""Singular values and pair distances of a network frozen to float32."""

FLOAT64_EXACT = 1e-13
"""The same in float64."""


def moved(name: str, shape: tuple[int, ...], **options: object) -> Classifier:
    """A model whose free parameters are no longer where they started."""
    normalize = Normalize(0.5 * torch.ones(shape[0]), 0.25 * torch.ones(shape[0]))
    model = build_model(name, shape, 4, normalize=normalize, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.02 * torch.randn_like(parameter)
    return model


MODELS = {
    "ugnn": lambda: moved("ugnn", (2, 4, 8), depth=1),
    "dense_ugnn": lambda: moved("dense_ugnn", (16,), linear="bjorck", head="lbfgs"),
    "wide": lambda: moved("dense_ugnn", (300,), hidden=(300, 100)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MODELS)
def test_weights_are_exact_and_what_was_measured_is_stored(name: str, dtype: torch.dtype) -> None:
    frozen = freeze(MODELS[name](), dtype)
    promise = FLOAT32_PROMISE if dtype == torch.float32 else FLOAT64_EXACT
    assert all(buffer.dtype == dtype for buffer in frozen.buffers())
    figures = audit(frozen)
    assert figures.orthogonality_error <= promise
    assert figures.upd_error <= promise
    assert frozen.facts["orthogonality_error"] == figures.orthogonality_error
    assert frozen.facts["upd_error"] == figures.upd_error
    assert frozen.facts["dtype"] == str(dtype).removeprefix("torch.")
    rows = [[row.kind, row.smallest, row.largest] for row in figures.layers]
    assert frozen.facts["layers"] == rows


@pytest.mark.parametrize("name", MODELS)
def test_unit_gradients_in_float64_evaluation(name: str) -> None:
    frozen = freeze(MODELS[name]())
    x = torch.rand(5, *frozen.in_shape, dtype=torch.float64)
    assert unit_gradient_error(frozen.in_float64(), x) <= 1e-6


@pytest.mark.parametrize("name", MODELS)
def test_margins_stay(name: str) -> None:
    model = MODELS[name]()
    frozen = freeze(model)
    x = torch.rand(20, *model.in_shape)
    mine, other = model(x), frozen(x)
    differences = (mine - mine[:, :1]) - (other - other[:, :1])
    assert differences.abs().max() <= 1e-5  # float32 rounding of logits of size 4


def test_no_parametrisation_is_left() -> None:
    frozen = freeze(MODELS["ugnn"]())
    kinds = [type(layer) for layer in frozen.layers]
    assert kinds[0] is Normalize
    assert kinds.count(CircularConvolution) == 2
    assert kinds[-1] is Dense
    assert not list(frozen.parameters())


@pytest.mark.parametrize("mode", [True, False])
def test_the_model_is_left_untouched(mode: bool) -> None:
    model = MODELS["ugnn"]().train(mode)
    before = copy.deepcopy(model.state_dict())
    freeze(model)
    assert model.training == mode
    assert all(parameter.requires_grad for parameter in model.parameters())
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize("options", [{}, {"linear": "manifold"}, {"linear": "bjorck"}])
def test_training_on_does_not_change_what_was_frozen(options: dict[str, str]) -> None:
    model = build_model("dense_ugnn", (6,), 3, **options).double()
    frozen = freeze(model, torch.float64)
    before = copy.deepcopy(frozen.state_dict())
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            tensor += 0.5
    for name, value in frozen.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_classes_are_kept() -> None:
    assert freeze(MODELS["wide"](), classes=("a", "b", "c", "d")).classes == ("a", "b", "c", "d")


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(ValueError, match="float32 or torch.float64, got torch.float16"):
        freeze(MODELS["wide"](), torch.float16)


def test_weights_far_from_orthogonal_are_refused() -> None:
    model = build_model("dense_ugnn", (6,), 3, linear="manifold")
    with torch.no_grad():
        model.features[1].raw *= 3.0
    with pytest.raises(ValueError, match="far from orthogonal"):
        freeze(model)


TINY = Recipe(
    name="tiny",
    data=DataOptions(name="digits", limit=60),
    model=ModelOptions(name="dense_ugnn", options={"hidden": [12]}),
    training=TrainingOptions(epochs=1, batch_size=32),
)


def test_a_run_is_frozen_to_its_dtype_with_its_classes(tmp_path: Path) -> None:
    for dtype in ("float32", "float64"):
        folder = RunFolder(tmp_path / dtype)
        train_run(Recipe(**{**vars(TINY), "dtype": dtype}), folder)
        message = freeze_run(folder)
        frozen = load(folder.model_file)
        assert message.startswith("freeze: orthogonality error")
        assert frozen.dtype == getattr(torch, dtype)
        assert frozen.classes == load_dataset("digits").classes
        assert {"hardware", "torch", "commit"} <= set(frozen.facts)


def test_a_missing_step_is_named(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(RunError, match="unitmargin train RECIPE"):
        freeze_run(folder)


def test_a_model_states_the_weights_that_it_was_made_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another training may end while the weights are read, or while they are frozen."""
    folder = RunFolder(tmp_path)
    train_run(TINY, folder)

    def replace() -> None:
        tensors, header = read_tensors(folder.weights_file)
        write_tensors(folder.weights_file, {k: v + 1 for k, v in tensors.items()}, header)

    def late(*given: object, **options: object) -> object:
        replace()
        return freeze(*given, **options)

    def early(file: Path, model: Classifier) -> None:
        read_weights(file, model)
        replace()

    with monkeypatch.context() as patch:
        patch.setattr("unitmargin.steps.freeze.freeze", late)
        freeze_run(folder)
    with pytest.raises(RunError, match="is not of the weights in"):
        folder.frozen()
    monkeypatch.setattr("unitmargin.steps.freeze.read_weights", early)
    with pytest.raises(ValueError, match="weights.safetensors must stay as it is while it is read"):
        freeze_run(folder)
