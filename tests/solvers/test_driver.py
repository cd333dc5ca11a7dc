"""What happens around every solver: arguments, the caller's model, batches, counts, progress."""

import copy
import io
from typing import Any

import pandas
import pytest
import torch
from jaxtyping import TypeCheckError
from solvers.cases import QUICK, affine, exact, labelled, piecewise_linear, trained_ugnn
from torch import Tensor, nn

import unitmargin as um
from unitmargin.solvers import SOLVERS, Status, minimal_perturbation


class Restless(nn.Module):
    """Everything an evaluation could disturb: modes, buffers, dropout, parameters."""

    def __init__(self, explode: bool = False) -> None:
        super().__init__()
        self.explode = explode
        self.linear = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(6, 3)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.explode and self.calls > 3:
            raise RuntimeError("the model is broken")
        logits: Tensor = self.head(self.drop(self.norm(self.linear(x)).relu()))
        return logits


def state(model: nn.Module) -> list[Any]:
    return [
        [module.training for module in model.modules()],
        [parameter.requires_grad for parameter in model.parameters()],
        [parameter.grad for parameter in model.parameters()],
        [tensor.clone() for tensor in model.state_dict().values()],
        [tensor._version for tensor in model.state_dict(keep_vars=True).values()],
    ]


def same(left: list[Any], right: list[Any]) -> bool:
    tensors = all(torch.equal(a, b) for a, b in zip(left[3], right[3], strict=True))
    return tensors and left[:3] == right[:3] and left[4] == right[4]


@pytest.mark.parametrize("explode", [False, True], ids=("whole", "broken"))
@pytest.mark.parametrize("solver", ["sphere_tracing", "deepfool", "ddn"])
def test_the_model_is_untouched_also_on_an_exception(solver: str, explode: bool) -> None:
    model = Restless(explode).train()
    model.norm.eval()
    model.linear.weight.requires_grad_(False)
    before = state(model)
    x = torch.rand(6, 4)
    labels = Restless.forward(copy.deepcopy(model).eval(), x).argmax(1)
    if explode:
        with pytest.raises(RuntimeError, match="the model is broken"):
            minimal_perturbation(model, x, labels, solver)
    else:
        minimal_perturbation(model, x, labels, solver)
    assert same(before, state(model))


def test_the_model_is_evaluated_in_evaluation_mode() -> None:
    model = Restless().train()
    x = torch.rand(6, 4)
    labels = copy.deepcopy(model).eval()(x).argmax(1)
    found = minimal_perturbation(model, x, labels)
    assert bool((found.status == Status.FOUND).all())
    again = minimal_perturbation(model, x, labels)
    assert torch.equal(found.distance, again.distance)


def test_it_works_inside_no_grad_and_inference_mode() -> None:
    truth, x, labels = exact("unit_affine", torch.float32, 4)
    plain = minimal_perturbation(truth.network, x, labels)
    with torch.no_grad():
        assert torch.equal(minimal_perturbation(truth.network, x, labels).distance, plain.distance)
    with torch.inference_mode():
        inside = minimal_perturbation(truth.network, 1.0 * x, labels)
    assert torch.equal(inside.distance, plain.distance)


def test_a_model_with_parametrised_weights_is_attacked_like_its_frozen_form() -> None:
    model = um.DenseUGNN(in_shape=(6,), n_classes=3)
    x = torch.rand(8, 6)
    labels = model(x).argmax(1)
    raw = minimal_perturbation(model, x, labels)
    frozen = minimal_perturbation(um.freeze(model), x, labels)
    assert torch.allclose(raw.distance, frozen.distance, rtol=1e-4, atol=0)


def test_calls_are_counted_by_sample() -> None:
    counted: list[int] = []

    class Counting(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            counted.append(len(x))
            return torch.cat((x, 0.9 * x[:, :1].relu()), dim=1)

    x, labels = torch.rand(5, 2) + torch.tensor([1.0, 0.0]), torch.zeros(5, dtype=torch.int64)
    for solver in SOLVERS:
        counted.clear()
        options = {"steps": 9} if solver in ("ddn", "iterative_penalty", "carlini_wagner") else {}
        found = minimal_perturbation(Counting(), x, labels, solver, **options)
        assert int(found.n_forward.sum()) == sum(counted), solver
        assert int(found.n_backward.min()) >= 1


def test_finished_samples_cost_nothing_more() -> None:
    frozen, x, labels = trained_ugnn()
    found = minimal_perturbation(frozen, x, labels, steps=100)
    assert int(found.n_backward.min()) < int(found.n_backward.max())
    truth, flat, flat_labels = exact("unit_affine", torch.float64)
    quick = minimal_perturbation(truth.network, flat, flat_labels, steps=1000)
    assert int(quick.n_backward.max()) <= 6


def test_a_mixed_batch_is_settled_sample_by_sample() -> None:
    truth, x, labels = exact("affine", torch.float64, 6)
    mixed = labels.clone()
    mixed[::2] = (mixed[::2] + 1) % 5
    found = minimal_perturbation(truth.network, x, mixed, batch_size=4)
    already = found.status == Status.ALREADY_MISCLASSIFIED
    assert already.tolist() == [True, False] * 3
    plain = minimal_perturbation(truth.network, x, labels)
    assert torch.allclose(found.distance[1::2], plain.distance[1::2], rtol=1e-9)


def test_a_logit_that_is_not_finite_is_a_failure() -> None:
    model = affine(torch.tensor([[torch.inf, 0.0], [0.0, 1.0]]), torch.zeros(2))
    found = minimal_perturbation(model, torch.rand(2, 2), torch.tensor([0, 1]))
    assert found.status.tolist() == [Status.FAILED, Status.FAILED]


def test_without_refinements_the_solver_keeps_its_own_point() -> None:
    frozen, x, labels = trained_ugnn()
    own = minimal_perturbation(frozen, x, labels, "deepfool", refinements=0)
    refined = minimal_perturbation(frozen, x, labels, "deepfool")
    assert bool((refined.distance < own.distance).all())
    assert int((refined.n_forward - own.n_forward).max()) <= 20


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("progress", [True, False])
def test_a_bar_counts_evaluations_on_a_terminal_alone(
    terminal: bool, progress: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr("sys.stderr", screen)
    truth, x, labels = exact("affine", torch.float32, 4)
    minimal_perturbation(truth.network, x, labels, progress=progress)
    assert ("evaluations" in screen.getvalue()) == (terminal and progress)
    assert (screen.getvalue() == "") == (not (terminal and progress))


class Softmax(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.network(x), dim=1)


def test_softmax_outputs_are_refused_and_logits_that_look_like_them_are_not() -> None:
    model = piecewise_linear()
    x, labels = labelled(model)
    with pytest.raises(ValueError, match="must return logits, got rows in"):
        minimal_perturbation(Softmax(model), x, labels)
    with pytest.raises(ValueError, match="must return logits, got rows in"):
        minimal_perturbation(Softmax(model), x[:1], labels[:1])
    chance = affine(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([0.0, 1.0]))
    found = minimal_perturbation(chance, torch.tensor([[0.75, 0.0]]), torch.tensor([0]))
    assert float(found.distance) == pytest.approx(0.25, rel=1e-6)


X, Y = torch.rand(3, 4), torch.zeros(3, dtype=torch.int64)

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "solver": ({"solver": "sphere"}, "solver must be one of sphere_tracing, .*got 'sphere'"),
    "option": ({"stride": 3}, "options must be among steps, .*got 'stride'"),
    "steps": ({"steps": 0}, "steps must be >= 1, got 0"),
    "whole turn": ({"first_turn": -1}, "first_turn must be finite and >= 0, got -1"),
    "turn": ({"first_turn": -1.0}, "first_turn must be finite and >= 0, got -1.0"),
    "integers": ({"x": torch.ones(3, 4, dtype=torch.int64)}, "x must be floating point .*int64"),
    "vector": ({"x": torch.ones(3)}, r"x must have shape .*; add the batch axis: x\[None\]"),
    "infinite": (
        {"x": torch.cat((X[:2], X[2:] / 0.0))},
        "x must be finite, got NaN or infinite entries in sample 2; clean",
    ),
    "label shape": ({"labels": Y[:2]}, r"labels must be one a sample, shape \(3,\)"),
    "label type": ({"labels": Y.float()}, "labels must be of an integer dtype"),
    "label range": ({"labels": Y + 5}, "labels must be below the 3 classes"),
    "label sign": ({"labels": Y - 1}, "labels must be >= 0, got -1"),
    "box order": ({"box": (1.0, 0.0)}, "low < high"),
    "box": ({"box": (0.0, 0.1)}, "x must lie in the box"),
    "box of entries": (
        {"box": (torch.zeros(4), torch.full((4,), 0.1))},
        "x must lie in the box between its ends",
    ),
    "box shape": ({"box": (torch.zeros(4), torch.ones(2))}, r"two arrays of shape \(4,\), got"),
    "box sides": (
        {"box": (torch.zeros(4), torch.tensor([1.0, 1.0, -0.5, 0.0]))},
        "low < high in every entry, got 0 and -0.5 in entry 2; pass two arrays",
    ),
    "refinements": ({"refinements": -1}, "refinements must be >= 0"),
    "batch size": ({"batch_size": 0}, "batch_size must be >= 1, got 0"),
    "one output": ({"model": nn.Linear(4, 1)}, "at least 2 classes"),
    "loss": ({"solver": "ddn", "loss": "hinge"}, "loss must be one of cross_entropy, margin"),
    "temperature": ({"solver": "margin_ddn", "temperature": 3.0}, "temperature must be 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_named(case: str) -> None:
    change, message = WRONG[case]
    model = affine(torch.randn(3, 4), torch.tensor([9.0, 0.0, 0.0]))
    arguments = {"model": model, "x": X, "labels": Y} | change
    with pytest.raises(ValueError, match=message):
        minimal_perturbation(**arguments)


@pytest.mark.parametrize("options", [{"loss": "hinge"}, {"loss": 3}, {"steps": 0}, {"radius": 1}])
def test_a_wrong_option_is_named_where_no_sample_needs_a_search(options: dict[str, Any]) -> None:
    model = affine(torch.randn(3, 4), torch.tensor([9.0, 0.0, 0.0]))
    misclassified = torch.ones_like(Y)
    with pytest.raises(ValueError, match=next(iter(options))):
        minimal_perturbation(model, X, misclassified, "ddn", **options)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(4,), (1, 2, 2)])
def test_a_batch_of_nothing_has_a_result_of_nothing(solver: str, shape: tuple[int, ...]) -> None:
    model = nn.Sequential(nn.Flatten(), affine(torch.randn(3, 4), torch.zeros(3)))
    x, labels = torch.zeros(0, *shape), Y[:0]
    for box in (None, (0.0, 1.0)):
        for name, value in vars(minimal_perturbation(model, x, labels, solver, box)).items():
            assert value.shape == (x.shape if name == "point" else (0,)), name


def test_arrays_and_data_frames_are_searched_like_tensors() -> None:
    truth, x, labels = exact("affine", torch.float32, 4)
    expected = minimal_perturbation(truth.network, x, labels)
    frame = pandas.DataFrame(x.numpy(), index=[3, 1, 4, 1])
    kinds = pandas.Series(labels.numpy(), index=[9, 2, 6, 5]), labels.numpy().astype(">i2")
    for inputs, classes in zip((frame, x.numpy()[::-1][::-1]), kinds, strict=True):
        found = minimal_perturbation(truth.network, inputs, classes)
        for name, value in vars(found).items():
            assert torch.equal(value, getattr(expected, name)), name


def test_a_function_is_not_a_model() -> None:
    with pytest.raises((ValueError, TypeCheckError), match="model"):
        minimal_perturbation(torch.sin, X, Y)  # type: ignore[arg-type]


def test_a_frozen_network_checks_the_shape_of_its_inputs() -> None:
    frozen, x, labels = trained_ugnn()
    with pytest.raises(ValueError, match="x must have shape"):
        minimal_perturbation(frozen, x[:, 0], labels)


def test_a_model_that_cannot_be_copied_or_widened_is_refused() -> None:
    class Fixed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.float()

    with pytest.raises(ValueError, match=r"must compute in float64 after model.double\(\)"):
        minimal_perturbation(Fixed(), X, Y)
    model = nn.Linear(4, 3)
    model.cached = model.weight * 2.0
    with pytest.raises(ValueError, match="model must be copyable"):
        minimal_perturbation(model, X, Y)


class Scaled(nn.Module):
    """Writes into its input, as a normalisation by ``div_`` does, or not."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.in_place = in_place

    def forward(self, x: Tensor) -> Tensor:
        return x.div_(255.0) if self.in_place else x / 255.0


@pytest.mark.parametrize("solver", sorted(SOLVERS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_model_that_works_in_place_is_searched_like_any_other(
    solver: str, dtype: torch.dtype
) -> None:
    x = torch.tensor([[200.0, 0.0]], dtype=dtype)
    options, label = QUICK.get(solver, {}), torch.tensor([0])
    found, other = (
        minimal_perturbation(Scaled(in_place), x, label, solver, **options)
        for in_place in (True, False)
    )
    assert torch.equal(x, torch.tensor([[200.0, 0.0]], dtype=dtype))
    assert torch.equal(found.distance, other.distance)
    assert torch.equal(found.point.nan_to_num(), other.point.nan_to_num())
    in_place = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(2, 2)).to(dtype)
    minimal_perturbation(in_place, x, in_place(x.clone()).argmax(1), solver, **options)


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_what_the_models_precision_does_not_resolve_is_searched_in_float64(solver: str) -> None:
    """A start that float32 puts on the other side, 7e-10 from the boundary."""
    model = nn.Linear(2, 2, bias=False).requires_grad_(False)
    model.weight.copy_(0.6 * torch.eye(2))
    x = torch.tensor([[1.0 + 1e-9, 1.0]], dtype=torch.float64)
    label, options = torch.tensor([0]), QUICK.get(solver, {})
    found = minimal_perturbation(model, x, label, solver, **options)
    wide = minimal_perturbation(copy.deepcopy(model).double(), x, label, solver, **options)
    assert torch.equal(found.status, wide.status)
    assert torch.equal(found.distance, wide.distance)
    if solver == "sphere_tracing":
        assert 7e-10 < float(found.distance) < 2e-9


def test_a_network_of_inference_mode_is_searched() -> None:
    frozen, x, labels = trained_ugnn()
    with torch.inference_mode():
        loaded = copy.deepcopy(frozen)
        loaded.network.head.weight = loaded.network.head.weight * 1.0
    assert loaded.network.head.weight.is_inference()
    found = minimal_perturbation(loaded, x[:2], labels[:2])
    assert torch.equal(found.distance, minimal_perturbation(frozen, x[:2], labels[:2]).distance)


def test_a_model_without_gradients_is_refused() -> None:
    class Constant(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.tensor([[3.0, 1.0]], dtype=x.dtype).expand(len(x), 2)

    with pytest.raises(ValueError, match=r"model must be differentiable .* remove no_grad"):
        minimal_perturbation(Constant(), X, torch.zeros_like(Y))


def test_a_frame_is_no_input_of_a_network_that_states_an_encoding() -> None:
    torch.manual_seed(0)
    frozen = um.freeze(um.DenseUGNN((2,), 3))
    frame = pandas.DataFrame(torch.zeros(2, 2).numpy())
    labels = frozen(torch.zeros(2, 2)).argmax(1)
    minimal_perturbation(frozen, frame, labels, "deepfool")
    um.audit(frozen, frame)
    frozen.facts["encoding"] = {"label": "kind", "columns": [{"name": "0"}, {"name": "1"}]}
    with pytest.raises(TypeError, match="x must hold the numbers that the encoding"):
        minimal_perturbation(frozen, frame, labels, "deepfool")
    with pytest.raises(TypeError, match="x must hold the numbers that the encoding"):
        um.audit(frozen, frame)


def test_logits_that_the_models_type_cannot_hold_are_searched_in_float64() -> None:
    x, labels = torch.tensor([[7e4, 1e2], [3.0, 1.0]]), torch.zeros(2, dtype=torch.int64)
    half = torch.nn.Linear(2, 2, bias=False).half()
    with torch.no_grad():
        half.weight.copy_(torch.eye(2))
    found = minimal_perturbation(half, x, labels, "deepfool")
    truth = (x[:, 0] - x[:, 1]).double() / 2**0.5
    torch.testing.assert_close(found.distance, truth, rtol=1e-3, atol=0)
