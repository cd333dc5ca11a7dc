"""Measurements on networks whose figures are known."""

import math
from typing import Any

import pandas
import pytest
import torch
from exact import affine, box, stretched_affine, unit_affine
from jacobians import gnp_error, jacobian, upd_error
from torch import nn

from unitmargin import UGNN, DenseUGNN, freeze
from unitmargin.auditing.audit import audit, layer_rows
from unitmargin.auditing.gradients import (
    GRADIENT_NUMBERS,
    MOST_CLASSES,
    UNIT_GRADIENT_TOLERANCE,
    measured_classes,
    pair_distances,
    pair_gradient_norms,
    unit_gradient_error,
)
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.heads import HEADS
from unitmargin.layers.activations import Abs
from unitmargin.layers.normalize import Normalize
from unitmargin.orthogonal import ORTHOGONAL_CONVS

EXACTNESS = 1e-12
"""A few dozen float64 operations on numbers of size 1."""

ROUNDING = 2e-7
"""Two float32 ulps of 1."""


def test_the_jacobian_of_an_affine_layer_is_its_weight() -> None:
    layer = Dense(torch.randn(3, 4), torch.randn(3))
    assert torch.equal(jacobian(layer, torch.randn(4)), layer.weight)


def test_gnp_error_of_a_stretch() -> None:
    layer = Dense(torch.diag(torch.tensor([1.0, 1.5])), torch.zeros(2))
    assert gnp_error(layer, torch.zeros(2)) == 1.25
    assert gnp_error(Dense(torch.ones(2, 2), torch.zeros(2)), torch.zeros(2)) == 2.0


def test_upd_error_and_pair_distances() -> None:
    rows = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    assert pair_distances(rows).tolist() == [3.0, 4.0, 5.0]
    assert upd_error(rows) == 4.0
    assert upd_error(rows / 10) == pytest.approx(0.7, abs=ROUNDING)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_pair_gradient_norms_of_an_affine_network_are_row_distances(dtype: torch.dtype) -> None:
    truth = affine(dtype)
    norms = pair_gradient_norms(truth.network, truth.inputs)
    expected = pair_distances(truth.network.head.weight).expand_as(norms)
    assert norms.shape == (len(truth.inputs), 10)
    assert (norms - expected).abs().max() <= (
        ROUNDING * 20 if dtype == torch.float32 else EXACTNESS
    )


def test_pair_gradient_norms_are_taken_behind_the_normalisation() -> None:
    head = unit_affine(in_shape=(3,), classes=3).network.head
    std = torch.tensor([0.1, 1.0, 10.0], dtype=torch.float64)
    network = FrozenNetwork([Normalize(torch.zeros(3).double(), std), head], (3,))
    assert unit_gradient_error(network, torch.randn(5, 3).double()) <= EXACTNESS


def test_pair_gradient_norms_do_not_depend_on_the_chunk() -> None:
    truth = box()
    rows = GRADIENT_NUMBERS // (MOST_CLASSES * truth.inputs[0].numel()) + 1
    many = truth.inputs.repeat(-(-rows // len(truth.inputs)), 1)
    norms = pair_gradient_norms(truth.network, many)
    assert torch.equal(norms[: len(truth.inputs)], pair_gradient_norms(truth.network, truth.inputs))
    assert norms.shape == (len(many), 1)


def test_pairs_of_a_hundred_classes_stand_for_more() -> None:
    drawn = measured_classes(1_000)
    assert len(set(drawn)) == MOST_CLASSES == len(drawn)
    assert drawn == measured_classes(1_000) == sorted(drawn)
    assert measured_classes(100) == list(range(100))
    weight = torch.randn(120, 130, dtype=torch.float64)
    network = FrozenNetwork([Dense(weight, torch.zeros(120).double())], (130,))
    norms = pair_gradient_norms(network, torch.randn(2, 130, dtype=torch.float64))
    expected = pair_distances(weight[measured_classes(120)])
    assert (norms - expected).abs().max() <= EXACTNESS


def test_a_head_that_is_one_per_cent_too_long_shows_everywhere() -> None:
    frozen = freeze(DenseUGNN((6,), 4), dtype=torch.float64)
    x = torch.randn(10, 6, dtype=torch.float64)
    whole = audit(frozen, x)
    assert max(whole.upd_error, whole.unit_gradient_error, whole.orthogonality_error) <= EXACTNESS
    frozen.head.weight.mul_(1.01)
    broken = audit(frozen, x)
    assert broken.upd_error == pytest.approx(0.01, abs=EXACTNESS)
    assert broken.unit_gradient_error == pytest.approx(0.01, abs=EXACTNESS)
    assert broken.orthogonality_error == whole.orthogonality_error


def test_a_layer_that_is_one_per_cent_too_short_shows() -> None:
    frozen = freeze(DenseUGNN((6,), 4), dtype=torch.float64)
    layer = frozen.layers[2]
    assert isinstance(layer, Dense)
    layer.weight[0].mul_(0.99)
    figures = audit(frozen)
    assert figures.orthogonality_error == pytest.approx(0.01, abs=EXACTNESS)
    row = figures.layers[2]
    assert (row.kind, row.gnp) == ("Dense", False)
    assert row.smallest == pytest.approx(0.99, abs=EXACTNESS)
    assert row.largest == pytest.approx(1.0, abs=EXACTNESS)


def test_the_audit_names_every_layer_but_the_head() -> None:
    model = DenseUGNN((6,), 4, hidden=(6, 5))
    figures = audit(model)
    assert [row.name for row in figures.layers] == [
        "normalize",
        *(f"features.{i}" for i in range(5)),
    ]
    assert [row.kind for row in figures.layers][2:] == [
        "CholeskyLinear",
        "MaxMin",
        "CholeskyLinear",
        "Abs",
    ]
    assert math.isnan(figures.unit_gradient_error)
    assert all(row.gnp for row in figures.layers)
    text = str(figures)
    assert text.count("\n") == 1 + len(figures.layers) + 2
    assert "features.2" in text
    assert "UPD error" in text


def test_the_audit_of_a_normalisation() -> None:
    row = layer_rows("normalize", Normalize(torch.zeros(2), torch.tensor([0.5, 4.0])))[0]
    assert (row.smallest, row.largest, row.gnp) == (0.25, 2.0, False)
    model = DenseUGNN((2,), 2, normalize=Normalize(torch.zeros(2), torch.tensor([0.5, 0.5])))
    assert "1/std" in str(audit(model))
    assert audit(model).orthogonality_error <= 1e-6


def test_a_module_that_is_no_layer_is_named_wherever_a_network_is_read() -> None:
    model = DenseUGNN((6,), 4)
    model.features[1] = nn.Linear(6, 6)
    for read in (audit, freeze):
        with pytest.raises(TypeError, match=r"features.1 must be a layer .* got Linear"):
            read(model)


def test_layers_without_a_weight_have_no_singular_values() -> None:
    assert Abs().singular_values() is None


def test_singular_values_are_those_used_in_forward() -> None:
    network = stretched_affine().network
    values = network.features()[0].singular_values()
    assert values is not None
    expected = torch.linspace(0.5, 2.0, 6, dtype=torch.float64)
    assert (values - expected).abs().max() <= EXACTNESS


def test_the_weight_of_the_head() -> None:
    model = DenseUGNN((6,), 4)
    assert torch.equal(model.head_weight(), model.head.weight().detach())
    frozen = freeze(model)
    assert frozen.head_weight() is frozen.head.weight


def test_an_audit_leaves_no_gradients() -> None:
    model = DenseUGNN((6,), 4)
    audit(model, torch.randn(3, 6))
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("kind", [lambda x: x.numpy(), lambda x: pandas.DataFrame(x.numpy()[::-1])])
def test_inputs_of_any_type_are_rounded_to_that_of_the_network(kind: Any) -> None:
    x = torch.rand(5, 4, dtype=torch.float64)
    for network in (DenseUGNN((4,), 3), freeze(DenseUGNN((4,), 3))):
        assert audit(network, kind(x)).unit_gradient_error <= UNIT_GRADIENT_TOLERANCE


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.rand(0, 4), "must hold a sample at least, got none; leave it out"),
        (torch.rand(4), r"x must have shape \(batch, 4\), got \(4,\); add the batch axis"),
        (torch.rand(2, 3), r"x must have shape \(batch, 4\), got \(2, 3\); resize it"),
        (torch.ones(2, 4).long(), "x must be floating point .*int64"),
        (torch.full((2, 4), torch.nan), "x must be finite, got NaN"),
    ],
)
def test_inputs_that_would_measure_nothing_are_refused(x: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        audit(freeze(DenseUGNN((4,), 3)), x)


def test_a_head_alone_is_audited() -> None:
    frozen = FrozenNetwork([Dense(torch.tensor([[0.5], [-0.5]]), torch.zeros(2))], (1,))
    assert "orthogonality error" in str(audit(frozen))


def test_gradients_are_measured_under_any_default_device() -> None:
    truth = unit_affine(torch.float64)
    with torch.device("meta"):
        assert unit_gradient_error(truth.network, truth.inputs[:2]) < EXACTNESS


@pytest.mark.parametrize("conv", ["skew", "cayley"])
def test_gradients_are_those_of_the_evaluation_in_any_mode(conv: str) -> None:
    """In training a skew layer's series is cut off."""
    model, x = UGNN((1, 4, 4), 3, depth=1, conv=conv, linear="skew"), torch.rand(2, 1, 4, 4)
    model.train()
    model.features[0].eval()
    modes = [module.training for module in model.modules()]
    error = audit(model, x).unit_gradient_error
    assert [module.training for module in model.modules()] == modes
    assert error == audit(model.eval(), x).unit_gradient_error < UNIT_GRADIENT_TOLERANCE


@pytest.mark.parametrize("conv", ORTHOGONAL_CONVS)
@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_named_wherever_they_are(conv: str, number: float) -> None:
    for place in range(2):
        model = UGNN((1, 4, 4), 3, depth=1, conv=conv)
        name, layer = [
            each for each in model.named_layers() if type(each[1]).__name__.endswith("Conv2d")
        ][place]
        with torch.no_grad():
            next(layer.parameters()).view(-1)[0] = number
            layer.raw.view(-1)[0] = number  # type: ignore[union-attr, operator]
        with pytest.raises(ValueError, match=f"{name} must have finite weights of full rank"):
            audit(model)
    frozen = freeze(UGNN((1, 4, 4), 3, depth=1, conv=conv))
    frozen.head.weight[0, 0] = number
    with pytest.raises(ValueError, match="head must have finite weights|weights must be numbers"):
        audit(frozen)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("given", [False, True], ids=["layers alone", "with inputs"])
def test_a_head_that_cannot_be_made_is_named(head: str, given: bool) -> None:
    model = DenseUGNN((6,), 3, hidden=(4,), head=head)
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter.fill_(torch.nan)
    with pytest.raises(ValueError, match="head must have finite weights of full rank"):
        audit(model, torch.rand(3, 6) if given else None)


@pytest.mark.parametrize("given", [False, True], ids=["layers alone", "with inputs"])
def test_a_layer_without_full_rank_is_named(given: bool) -> None:
    model = DenseUGNN((6,), 3, hidden=(4,))
    with torch.no_grad():
        model.features[1].raw.zero_()  # type: ignore[union-attr, operator]
    with pytest.raises(ValueError, match="features.1 must have finite weights of full rank"):
        audit(model, torch.rand(3, 6) if given else None)
