"""One contract for every registered activation, layer, head and model, pools of norms, and
layers on slices of maps.

A new entry of a registry is tested here without a new test: each property below holds for all of
them. What is special to one of them is tested in its own file.
"""

import copy
from collections.abc import Callable, Container
from pathlib import Path

import pytest
import torch
from jacobians import gnp_error, jacobian, upd_error
from jaxtyping import TypeCheckError
from slicing import ARRANGED
from torch import Tensor, nn

from unitmargin.auditing.audit import audit
from unitmargin.auditing.gradients import pair_distances, pair_gradient_norms, unit_gradient_error
from unitmargin.frozen import load, save
from unitmargin.heads import HEADS
from unitmargin.layers.activations import ACTIVATIONS
from unitmargin.layers.contract import TrainableLayer
from unitmargin.layers.l2_pool import L2Pool
from unitmargin.layers.promises import HEAD_PROMISES, UPD
from unitmargin.models import MODELS, Classifier, build_model, fixed_network
from unitmargin.models.freezing import freeze
from unitmargin.orthogonal import ORTHOGONAL_CONVS, ORTHOGONAL_LINEARS
from unitmargin.orthogonal.mixing import OrthogonalMixing
from unitmargin.orthogonal.reflection import OrthogonalReflection

GNP_EXACT = 1e-12
"""``J J^T`` in float64: a few hundred operations on numbers of size 1."""

GNP_FLOAT32 = 5e-6
"""``J J^T`` in float32, the weakest promise of any registered layer (Cayley)."""

UNIT_GRADIENT = 1e-5
"""Pairwise gradient norms of a whole network in float32, the promise of the models."""

SAME_FUNCTION = 1e-5
"""A network before and after freezing, both evaluated in float32."""

SERIES = 0.05
"""Skew layers stop their series at degree 5 in training alone: 2e-2 a layer at the norms of random
filters."""

BFLOAT16 = 0.1
"""Rounding of a few bfloat16 products of size 1."""

PERTURBATION = 0.05
"""What tests add to free parameters, so that nothing holds only at the start."""

NEVER_GROW = ("manifold",)
"""Convolutions that refuse more output than input channels; the others are isometries then."""

Factory = Callable[[], nn.Module]
Case = tuple[Factory, tuple[int, ...]]


def activation_cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for name, kind in ACTIVATIONS.items():
        channels = 2 * kind().group
        cases[f"{name}-vector"] = (kind, (channels,))
        cases[f"{name}-image"] = (kind, (channels, 2, 3))
    return cases


def pool_cases() -> dict[str, Case]:
    return {
        f"l2_pool-{size}": (lambda s=size: L2Pool(s), (2, 2 * size, 3 * size)) for size in (1, 2, 3)
    }


def linear_cases() -> dict[str, Case]:
    return {
        f"{name}-{inputs}-{outputs}": (lambda k=kind, i=inputs, o=outputs: k(i, o), (inputs,))
        for name, kind in ORTHOGONAL_LINEARS.items()
        for inputs, outputs in ((5, 5), (6, 4), (3, 1))
    }


def conv_cases() -> dict[str, Case]:
    return {
        f"{name}-{inputs}-{outputs}-{size[0]}x{size[1]}": (
            lambda k=kind, i=inputs, o=outputs, s=size: k(i, o, 3, s),
            (inputs, *size),
        )
        for name, kind in ORTHOGONAL_CONVS.items()
        for inputs, outputs, size in (
            (3, 3, (2, 2)),
            (4, 2, (3, 5)),
            (2, 2, (1, 1)),
            (4, 3, (3, 3)),
            (2, 3, (2, 2)),
            (3, 5, (3, 4)),
        )
        if outputs <= inputs or name not in NEVER_GROW
    }


def sliced_cases(kind: type[OrthogonalMixing] | type[OrthogonalReflection]) -> dict[str, Case]:
    return {
        f"{kind.__name__}-{name}": (
            lambda a=arrangement, c=channels: kind(a, c),
            (channels, *arrangement.map_size),
        )
        for name, (arrangement, channels) in ARRANGED.items()
    }


def head_cases() -> dict[str, Case]:
    return {
        f"{name}-{features}-{classes}": (lambda k=kind, f=features, c=classes: k(f, c), (features,))
        for name, kind in HEADS.items()
        for features, classes in ((4, 4), (7, 3), (2, 2))
    }


SHAPES = {"ugnn": (1, 4, 4), "dense_ugnn": (6,), "resnet9": (1, 16, 16)}
OTHER_SHAPE = (1, 4, 4)

OPTIONS: dict[str, dict[str, object]] = {
    "ugnn": {"kernel_size": 5, "conv": "manifold"},
    "dense_ugnn": {},
    "mixing_ugnn": {"plan": ["fold 2", "window 1", "reflect group 2"]},
}
OTHER_OPTIONS: dict[str, object] = {"width": 2}


def model_cases() -> dict[str, Case]:
    """UGNNs with every head; the others with their own, row normalisation and a UPD head."""
    cases: dict[str, Case] = {}
    for name in MODELS:
        shape = SHAPES.get(name, OTHER_SHAPE)
        for head in HEADS if name in OPTIONS else ("own", "lln", "simplex"):
            cases[f"{name}-{head}"] = (lambda n=name, s=shape, h=head: tiny(n, s, h), shape)
    return cases


def tiny(name: str, shape: tuple[int, ...], head: str) -> Classifier:
    options = OPTIONS.get(name, OTHER_OPTIONS) | ({} if head == "own" else {"head": head})
    return build_model(name, shape, 4, **options)


ACTIVATION_CASES, LINEAR_CASES, CONV_CASES = activation_cases(), linear_cases(), conv_cases()
HEAD_CASES, MODEL_CASES = head_cases(), model_cases()
SLICED = sliced_cases(OrthogonalMixing) | sliced_cases(OrthogonalReflection)
WEIGHTED = LINEAR_CASES | CONV_CASES | SLICED
GNP = ACTIVATION_CASES | pool_cases() | WEIGHTED
ALL = GNP | HEAD_CASES | MODEL_CASES


SKEW = {
    name: case for name, case in ALL.items() if "skew" in name or name.startswith("lip_convnet")
}


def over(cases: dict[str, Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases.values(), ids=cases)


def build(case: Case) -> tuple[nn.Module, tuple[int, ...]]:
    """The layer of a case with its free parameters moved, and the shape of one input."""
    factory, shape = case
    layer = factory()
    manifold = {
        id(parameter)
        for module in layer.modules()
        if isinstance(module, TrainableLayer)
        for parameters in module.manifold_parameters()
        for parameter in parameters
    }
    with torch.no_grad():
        for parameter in layer.parameters():
            if id(parameter) not in manifold:
                parameter += PERTURBATION * torch.randn_like(parameter)
    return layer, shape


def inputs(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(3, *shape, dtype=dtype)


def same_state(before: dict[str, Tensor], after: dict[str, Tensor]) -> bool:
    return before.keys() == after.keys() and all(torch.equal(before[k], after[k]) for k in before)


# --- GNP and UPD -----------------------------------------------------------------------------


@over(GNP)
def test_the_jacobian_keeps_what_the_layer_promises(case: Case) -> None:
    layer, shape = build(case)
    layer.eval()
    assert layer_error(layer, torch.randn(shape)) <= GNP_FLOAT32
    # Manifold weights are float32 numbers; the polish of freezing makes them exact.
    wide = layer.freeze().double()
    assert wide.promise == layer.promise
    assert layer_error(wide, torch.randn(shape, dtype=torch.float64)) <= GNP_EXACT


def layer_error(layer: nn.Module, x: Tensor) -> float:
    """Error of J J^T = I, or of J^T J = I for a layer that grows."""
    if layer.gnp:
        return gnp_error(layer, x)
    matrix = jacobian(layer, x).double()
    assert matrix.shape[0] > matrix.shape[1]
    return float((matrix.mT @ matrix - torch.eye(matrix.shape[1])).abs().max())


@over(HEAD_CASES)
def test_rows_of_heads_keep_what_they_promise(case: Case) -> None:
    head, shape = build(case)
    head.eval()
    jacobian = torch.func.jacrev(lambda x: head(x[None])[0])(torch.randn(shape)).detach()
    assert HEAD_PROMISES[head.promise.name] == head.promise
    assert head.promise.measure(jacobian) <= 1e-6  # the promise of every head in float32
    if head.promise == UPD:
        assert upd_error(jacobian) <= 1e-6
    assert torch.equal(jacobian, head.weight().detach())


@over(MODEL_CASES)
def test_pairwise_gradients_of_models_are_one_or_bounded(case: Case) -> None:
    model, shape = build(case)
    model.eval()
    if model.signed_distance:
        assert unit_gradient_error(model, inputs(shape)) <= UNIT_GRADIENT
    bounds = pair_distances(model.head.weight()) * (1.0 + UNIT_GRADIENT)
    assert bool((pair_gradient_norms(model, inputs(shape)) <= bounds).all())


@over(MODEL_CASES)
def test_the_audit_of_a_model_and_of_its_frozen_network_agree(case: Case) -> None:
    model, shape = build(case)
    frozen = freeze(model)
    mine, other = audit(model.eval()), audit(frozen, inputs(shape))
    assert (mine.head, mine.signed_distance) == (other.head, other.signed_distance)
    assert [row.promise for row in mine.layers] == [row.promise for row in other.layers]
    for figures in (mine, other):
        assert all(row.kept for row in figures.layers)
        assert figures.orthogonality_error <= 1e-5
        assert figures.lipschitz_error <= 1e-6
        assert figures.head_error <= 1e-6


# --- Refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ORTHOGONAL_LINEARS)
def test_growing_dense_layers_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"out_features must be .* J J\^T = I.*got 4 -> 5"):
        ORTHOGONAL_LINEARS[name](4, 5)


@pytest.mark.parametrize("map_size", [(2, 2), (3, 5)])
@pytest.mark.parametrize("name", NEVER_GROW)
def test_growing_convolutions_are_refused(name: str, map_size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"out_channels must be .* J J\^T = I.*got 2 -> 3"):
        ORTHOGONAL_CONVS[name](2, 3, 3, map_size)


@over(WEIGHTED | HEAD_CASES | MODEL_CASES)
def test_inputs_of_another_width_are_an_error(case: Case) -> None:
    layer, shape = build(case)
    for axis in range(len(shape)):
        wrong = tuple(n + 1 if i == axis else n for i, n in enumerate(shape))
        with pytest.raises((ValueError, RuntimeError, TypeCheckError)):
            layer(inputs(wrong))


# --- Gradients -------------------------------------------------------------------------------


@over(WEIGHTED | HEAD_CASES | MODEL_CASES)
def test_gradients_reach_every_parameter(case: Case) -> None:
    layer, shape = build(case)
    output = layer(inputs(shape))
    (output * torch.randn_like(output)).sum().backward()
    for name, parameter in layer.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            assert bool(torch.isfinite(parameter.grad).all()), name
            assert parameter.grad.abs().max() > 0, name


def without(cases: dict[str, Case], names: Container[str]) -> dict[str, Case]:
    return {name: case for name, case in cases.items() if name not in names}


# The gradient through the norm of a skew filter is exact where its power steps have converged,
# which tests/orthogonal/test_skew.py arranges.
@over(without(WEIGHTED | HEAD_CASES, SKEW))
def test_gradients_are_right(case: Case) -> None:
    layer, shape = build(case)
    layer.double()
    x = inputs(shape, torch.float64)
    free = {name: p for name, p in layer.named_parameters() if p.requires_grad}

    def output(*parameters: Tensor) -> Tensor:
        values = dict(zip(free, parameters, strict=True))
        result: Tensor = torch.func.functional_call(layer, values, (x,))
        return result

    assert torch.autograd.gradcheck(output, tuple(free.values()), fast_mode=True)


@over(ALL)
def test_gradients_of_the_input_are_right(case: Case) -> None:
    """The Jacobian of a permutation of the right one has orthonormal rows too."""
    layer, shape = build(case)
    x = inputs(shape, torch.float64).requires_grad_(True)
    assert torch.autograd.gradcheck(layer.double(), x, fast_mode=True)


# --- No hidden state -------------------------------------------------------------------------


@over(ALL)
def test_forward_and_backward_leave_state_and_random_numbers_alone(case: Case) -> None:
    layer, shape = build(case)
    x = inputs(shape).requires_grad_(True)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    given, numbers = x.detach().clone(), torch.get_rng_state()
    layer(x).sum().backward()
    assert same_state(before, layer.state_dict())
    assert torch.equal(numbers, torch.get_rng_state())
    assert torch.equal(x.detach(), given)


@over(without(ALL, SKEW))
def test_training_and_evaluation_give_the_same_output(case: Case) -> None:
    layer, shape = build(case)
    x = inputs(shape)
    trained = layer.train()(x)
    with torch.no_grad():
        assert torch.equal(layer.eval()(x), trained)
        assert torch.equal(layer(x), trained)


@over(SKEW)
def test_skew_layers_differ_in_training_by_their_truncation(case: Case) -> None:
    layer, shape = build(case)
    x = inputs(shape)
    with torch.no_grad():
        trained, evaluated = layer.train()(x), layer.eval()(x)
        assert torch.equal(layer(x), evaluated)
    norms = x.flatten(1).norm(dim=1)
    assert 0.0 < (trained - evaluated).abs().max() <= SERIES * norms.max()


@over(ALL)
def test_a_sample_does_not_see_its_batch(case: Case) -> None:
    layer, shape = build(case)
    layer.double()
    x = inputs(shape, torch.float64)
    alone = torch.cat([layer(row[None]) for row in x])
    assert (layer(x) - alone).abs().max() <= GNP_EXACT


@over(ALL)
def test_the_state_dictionary_is_all_there_is(case: Case) -> None:
    layer, shape = build(case)
    other = case[0]()
    other.load_state_dict(copy.deepcopy(layer.state_dict()))
    x = inputs(shape)
    assert torch.equal(other(x), layer(x))


# --- torch.func and autocast -----------------------------------------------------------------


@over(ALL)
def test_vmap_and_jacrev_over_the_input(case: Case) -> None:
    layer, shape = build(case)
    layer.double()
    x = inputs(shape, torch.float64)

    def single(row: Tensor) -> Tensor:
        output: Tensor = layer(row[None])[0]
        return output

    assert (torch.func.vmap(single)(x) - layer(x)).abs().max() <= GNP_EXACT
    expected = torch.autograd.functional.jacobian(single, x[0])
    assert (torch.func.jacrev(single)(x[0]) - expected).abs().max() <= GNP_EXACT
    batched = torch.func.vmap(torch.func.jacrev(single))(x)
    assert (batched[0] - expected).abs().max() <= GNP_EXACT


@pytest.mark.parametrize("name", ORTHOGONAL_LINEARS)
def test_autocast_rounds_the_weight_after_orthogonalising(name: str) -> None:
    layer, _ = build((lambda: ORTHOGONAL_LINEARS[name](6, 4, bias=False), (6,)))
    layer.eval()
    with torch.autocast("cpu", torch.bfloat16):
        columns = layer(torch.eye(6))
    assert columns.dtype == torch.bfloat16
    assert torch.equal(columns.mT, layer.weight().to(torch.bfloat16))


@over(CONV_CASES)
def test_autocast_reaches_the_products_of_convolutions_alone(case: Case) -> None:
    layer, shape = build(case)
    x = inputs(shape)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = layer(x)
    difference = (rounded - layer(x)).detach().abs().max()
    assert 0 < float(difference) <= BFLOAT16


@over(HEAD_CASES)
def test_autocast_does_not_reach_heads(case: Case) -> None:
    layer, shape = build(case)
    x = inputs(shape)
    with torch.autocast("cpu", torch.bfloat16):
        output = layer(x)
    assert output.dtype == torch.float32
    assert torch.equal(output, layer(x))


@over(MODEL_CASES)
def test_models_train_under_autocast(case: Case) -> None:
    model, shape = build(case)
    x = inputs(shape)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(x)
    assert logits.dtype == torch.float32
    assert (logits - model(x)).abs().max() <= BFLOAT16
    logits.square().sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters() if p.requires_grad)


@over(MODEL_CASES)
def test_autocast_changes_nothing_of_what_is_deployed_and_measured(case: Case) -> None:
    model, _ = build(case)
    makers = (freeze, fixed_network)
    expected = [make(model).state_dict() for make in makers]
    figures = audit(model)
    with torch.autocast("cpu", torch.bfloat16):
        found = [make(model).state_dict() for make in makers]
        assert str(audit(model)) == str(figures)
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name, tensor in other.items():
            assert tensor.dtype == one[name].dtype
            assert torch.equal(tensor, one[name]), name


# --- Freezing and files ----------------------------------------------------------------------


@over(WEIGHTED | HEAD_CASES)
def test_a_fixed_layer_is_the_evaluated_one(case: Case) -> None:
    layer, shape = build(case)
    x = inputs(shape)
    with torch.no_grad():
        expected = layer.eval()(x)
    fixed = layer.fix()
    assert not list(fixed.parameters())
    assert {buffer.dtype for buffer in fixed.buffers()} <= {torch.float32, torch.int64}
    assert (fixed(x) - expected).abs().max() <= SAME_FUNCTION


@over(MODEL_CASES)
def test_a_fixed_network_is_the_evaluated_model(case: Case) -> None:
    model, shape = build(case)
    before = copy.deepcopy(model.eval().state_dict())
    network = fixed_network(model)
    assert same_state(before, model.state_dict())
    x = inputs(shape)
    with torch.no_grad():
        assert (network(x) - model(x)).abs().max() <= SAME_FUNCTION
    deviation = max(
        abs(row.error - own.error)
        for row, own in zip(audit(network).layers, audit(model).layers, strict=True)
    )
    assert deviation <= 1e-9


@over(WEIGHTED)
def test_a_frozen_layer_is_the_same_function(case: Case) -> None:
    layer, shape = build(case)
    x = inputs(shape)
    layer.eval()
    assert (layer.freeze()(x.double()) - layer(x).double()).abs().max() <= SAME_FUNCTION


@over(MODEL_CASES)
def test_freezing_keeps_the_margins(case: Case) -> None:
    model, shape = build(case)
    x = inputs(shape)
    logits, frozen = model.eval()(x), freeze(model)(x)
    mine, other = logits - logits[:, :1], frozen - frozen[:, :1]
    assert (mine - other).abs().max() <= SAME_FUNCTION


@over(MODEL_CASES)
def test_a_saved_network_comes_back_bit_by_bit(case: Case, tmp_path: Path) -> None:
    model, shape = build(case)
    frozen = freeze(model)
    save(frozen, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    x = inputs(shape)
    assert torch.equal(frozen(x), again(x))
    assert same_state(frozen.state_dict(), again.state_dict())
    assert torch.equal(frozen.pair_constants(), again.pair_constants())
    assert (again.in_shape, again.classes, again.facts) == (
        frozen.in_shape,
        frozen.classes,
        frozen.facts,
    )
