"""What is frozen is what was trained: measured, bounded, and refused by the name of the layer."""

import copy
import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from unitmargin.data.digits import FILE
from unitmargin.heads import HEADS
from unitmargin.layers.contract import Layer
from unitmargin.models import (
    MODELS,
    UGNN,
    Classifier,
    ConvexResidual,
    DenseUGNN,
    ResNet9,
    build_model,
    fixed_network,
    freeze,
)
from unitmargin.models.polishing import distance, polished
from unitmargin.orthogonal import ORTHOGONAL_CONVS, ORTHOGONAL_LINEARS
from unitmargin.orthogonal.cholesky import CholeskyLinear
from unitmargin.training.optimizers import build_optimizers

ROUNDING = 1e-4
"""How far polishing moves the float32 weights of a small layer, after a few harsh steps."""

EXACT = 1e-12
"""The same in float64."""

ITERATED = 1e-7
"""In float64, what one correction leaves of a step on the manifold, and L-BFGS at its floor."""

Make = Callable[[], Classifier]

LINEARS: dict[str, Make] = {
    f"linear-{name}": lambda n=name: DenseUGNN((6,), 3, linear=n) for name in ORTHOGONAL_LINEARS
}
CONVS: dict[str, Make] = {
    f"conv-{name}": lambda n=name: UGNN((1, 4, 4), 3, conv=n, depth=2, hidden=(8,))
    for name in ORTHOGONAL_CONVS
}
HEAD_MODELS: dict[str, Make] = {
    f"head-{name}": lambda n=name: DenseUGNN((6,), 3, head=n) for name in HEADS
}
RESIDUAL: dict[str, Make] = {"residual": lambda: ResNet9((1, 16, 16), 3, width=2)}
ALL = LINEARS | CONVS | HEAD_MODELS | RESIDUAL


def over(cases: dict[str, Make]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("make", cases.values(), ids=cases)


def trained(model: Classifier, rate: float, steps: int = 5) -> Classifier:
    """The model after a few steps of its own optimisers."""
    optimizers = build_optimizers(model, rate, rate)
    dtype = model.head.bias.dtype
    for _ in range(steps):
        output = model.train()(torch.randn(8, *model.in_shape, dtype=dtype))
        (output * torch.randn_like(output)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return model


# --- How far polishing moves the network ------------------------------------------------------


@pytest.mark.parametrize("rate", [1e-3, 1e-1])
@over(ALL)
def test_their_own_optimisers_leave_rounding_to_polish(make: Make, rate: float) -> None:
    assert freeze(trained(make(), rate)).facts["polishing_error"] <= ROUNDING


@pytest.mark.parametrize("name", ALL)
def test_a_float64_model_trains_and_freezes_to_rounding(name: str) -> None:
    model = trained(ALL[name]().double(), 1e-2)
    frozen = freeze(model, dtype=torch.float64)
    tolerance = ITERATED if name.endswith(("manifold", "lbfgs")) else EXACT
    assert frozen.facts["polishing_error"] <= tolerance
    x = torch.randn(4, *model.in_shape, dtype=torch.float64)
    difference = (frozen(x) - model.eval()(x)).detach()
    assert (difference - difference[:, :1]).abs().max() <= 100 * tolerance


def test_weights_that_left_the_manifold_are_refused() -> None:
    """Digits by AdamW on the raw parameters: 0.94 of them right, and 0.3 behind a polish."""
    with np.load(FILE) as digits:
        x = torch.from_numpy(digits["inputs"]).flatten(1) / 16.0
        y = torch.from_numpy(digits["labels"]).long()
    model = DenseUGNN((64,), 10, linear="manifold")
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for index in torch.randperm(len(x)).split(128):
        nn.functional.multi_margin_loss(model(x[index]), y[index]).backward()
        optimizer.step()
        optimizer.zero_grad()
    message = refusal(model)
    assert message.startswith("features.")
    assert "unitmargin.build_optimizers" in message
    assert "\n" not in message


def test_the_distance_is_that_of_the_weight_that_was_moved() -> None:
    model = DenseUGNN((6,), 3, linear="manifold")
    with torch.no_grad():
        model.features[1].raw.mul_(1.0001)
    moved = freeze(model).facts["polishing_error"]
    assert moved == pytest.approx(1e-4 * math.sqrt(6), rel=1e-2)
    with torch.no_grad():
        model.features[3].raw.mul_(1.1)
    message = r"features\.3 must be frozen as it was trained: .* at most 1e-03, got 2\.4e-01"
    with pytest.raises(ValueError, match=message):
        freeze(model)


def test_the_common_shift_of_a_head_is_no_distance() -> None:
    model = DenseUGNN((6,), 3)
    with torch.no_grad():
        model.head.raw.add_(5.0)
    assert freeze(model).facts["polishing_error"] <= ROUNDING
    head = model.head
    assert distance("head", head.fix(), head.freeze(), head=True) <= ROUNDING
    assert distance("head", head.fix(), head.freeze()) > 1.0


def test_a_layer_that_deploys_another_bias_is_refused() -> None:
    model = DenseUGNN((6,), 3)
    layer = model.features[1]
    frozen = layer.freeze()
    frozen.bias.add_(0.02)
    assert distance("one", layer.fix(), frozen) == pytest.approx(0.02 * math.sqrt(6), rel=1e-3)


def test_fix_and_freeze_of_another_kind_are_refused() -> None:
    model = UGNN((1, 4, 4), 3)
    with pytest.raises(ValueError, match="one must be fixed and frozen to the same kind"):
        distance("one", model.features[0].fix(), model.head.freeze())


# --- Numbers at the edges ---------------------------------------------------------------------


def weighted(model: Classifier) -> list[tuple[str, Layer]]:
    layers = [*model.named_layers(), ("head", model.head)]
    return [(name, layer) for name, layer in layers if list(layer.parameters())]


def refusal(model: Classifier) -> str:
    """Why the model is not frozen; empty if it is."""
    try:
        freeze(model)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("value", [math.nan, math.inf])
@over(ALL)
def test_a_number_that_is_not_finite_is_named(make: Make, value: float) -> None:
    model = make()
    parameters = [
        (f"{name}.{key}", parameter)
        for name, layer in weighted(model)[::2]
        for key, parameter in layer.named_parameters()
        if parameter.numel()
    ]
    assert parameters
    for name, parameter in parameters:
        kept = parameter.detach().clone()
        with torch.no_grad():
            parameter.view(-1)[0] = value
            assert refusal(model).startswith(f"{name} must be finite, got {value};")
            parameter.copy_(kept)


def flattened(parameter: torch.Tensor) -> torch.Tensor:
    """All rows the first one: rank one."""
    return parameter[:1].expand_as(parameter).clone() if parameter.ndim else parameter


@pytest.mark.parametrize(
    "change",
    [torch.zeros_like, lambda p: torch.full_like(p, 1e30), flattened],
    ids=["zero", "huge", "rank one"],
)
@pytest.mark.parametrize("index", [0, -1])
@over(ALL)
def test_every_weight_freezes_as_it_is_evaluated_or_is_named(
    make: Make, index: int, change: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    model = make()
    name, layer = weighted(model)[index]
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(change(parameter))
    message = refusal(model)
    assert message.startswith(name) or not message
    assert "\n" not in message


def test_a_head_that_lost_a_row_breaks_its_promise() -> None:
    model = DenseUGNN((6,), 3, head="lln")
    with torch.no_grad():
        model.head.raw[1] = 0.0
    with pytest.raises(ValueError, match=r"^head must keep what it promises \(unit_rows\)"):
        freeze(model)


def test_a_normalisation_that_cannot_divide_is_named() -> None:
    model = DenseUGNN((6,), 3)
    model.normalize.std[2] = 0.0
    with pytest.raises(ValueError, match=r"^normalize cannot be deployed: std must be positive"):
        freeze(model)


def test_a_bias_beyond_float32_is_named() -> None:
    model = DenseUGNN((6,), 3).double()
    with torch.no_grad():
        model.head.bias[0] = 1e300
    with pytest.raises(ValueError, match=r"^head\.bias must be finite, got inf"):
        freeze(model)
    assert freeze(model, dtype=torch.float64).head.bias[0] == 1e300


def test_a_weight_without_rank_is_named_in_evaluation_too() -> None:
    model = DenseUGNN((6,), 3)
    with torch.no_grad():
        model.features[3].raw.zero_()
    with pytest.raises(ValueError, match=r"^features\.3 must have weights of full rank"):
        fixed_network(model)


def test_a_polished_layer_is_a_copy() -> None:
    layer = DenseUGNN((6,), 3).features[1]
    frozen, _ = polished("one", layer, torch.float32)
    pointers = {parameter.data_ptr() for parameter in layer.parameters()}
    assert not pointers & {buffer.data_ptr() for buffer in frozen.buffers()}


# --- Kinds, devices, copies -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("read", [freeze, fixed_network, lambda m: m(torch.zeros(1, 6))])
def test_half_precision_weights_are_refused(
    read: Callable[[Classifier], object], dtype: torch.dtype
) -> None:
    with pytest.raises(ValueError, match=rf"parameters must be float32 or float64, got {dtype}"):
        read(DenseUGNN((6,), 3).to(dtype))


LARGE_MAP = (1, 16, 16)


@pytest.mark.parametrize("name", ["ugnn", "dense_ugnn", "resnet9", "lip_convnet5", "large_convnet"])
def test_a_model_of_the_meta_device_takes_weights(name: str) -> None:
    options = {} if "ugnn" in name else {"width": 2}
    source = build_model(name, LARGE_MAP, 3, **options).eval()
    with torch.device("meta"):
        model = build_model(name, LARGE_MAP, 3, **options).eval()
    model.to_empty(device="cpu").load_state_dict(source.state_dict())
    x = torch.randn(2, *LARGE_MAP)
    assert torch.equal(model(x), source(x))


@pytest.mark.parametrize("name", MODELS)
def test_copies_and_pickles_are_the_same_model(name: str) -> None:
    options = {} if "ugnn" in name else {"width": 2}
    model = build_model(name, LARGE_MAP, 3, **options)
    x = torch.randn(2, *LARGE_MAP)
    expected = model(x)
    parameters = dict(model.named_parameters())
    assert torch.equal(copy.deepcopy(model)(x), expected)
    assert torch.equal(pickle.loads(pickle.dumps(model))(x), expected)
    assert torch.equal(torch.func.functional_call(model, parameters, (x,)), expected)


@pytest.mark.parametrize("domain", [(0.0, 70000.0), (0.1, 0.7)])
def test_the_domain_is_that_of_the_inputs_whatever_type_weights_had(
    domain: tuple[float, float],
) -> None:
    model = DenseUGNN((4,), 3)
    model.domain.copy_(torch.tensor(domain, dtype=torch.float64))
    for model_again in (model.half().float(), model.bfloat16().float(), model.double()):
        assert model_again.domain.dtype == torch.float64
        assert freeze(model_again).domain == domain


def test_a_residual_allows_what_the_layers_inside_it_allow() -> None:
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(64, 64, generator=generator).double() for _ in range(2))
    left, right = torch.linalg.qr(left).Q, torch.linalg.qr(right).Q
    layer = CholeskyLinear(64, 64)
    layer.raw.data = (left @ torch.logspace(0, -2.8, 64).double().diag() @ right).float()
    _, alone = polished("alone", layer, torch.float32)
    _, inside = polished("inside", ConvexResidual(layer), torch.float32)
    assert 1e-3 < alone == inside < 1e-2
