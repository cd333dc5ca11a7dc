"""Certificates against closed-form distances, and what is never claimed."""

import itertools
import math

import pytest
import torch
from exact import EXACT, affine, box, sphere, unit_affine
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from unitmargin.certificates.certify import (
    Certificate,
    certificate_from_logits,
    certify,
    sound_certificate,
)
from unitmargin.certificates.closest import RAY_REACH, closest_adversarial
from unitmargin.data import Dataset, Samples
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.frozen.rounding import RoundingBounds
from unitmargin.layers.activations import GroupSort
from unitmargin.layers.arithmetic import Affine
from unitmargin.layers.normalize import Normalize

EXACTNESS = 1e-12
"""Two float64 evaluations of numbers of size 1."""

TIGHTNESS = 1e-10
"""What the proved slack may cost on inputs of norm up to 10 with pair constants above 0.3."""

BOUNDARY = 1e-12
"""Remaining margin of a point that lies on the boundary, evaluated in float64."""

DTYPES = [torch.float32, torch.float64]

EVERY = [(name, dtype) for name in EXACT for dtype in DTYPES]


def ones(classes: int) -> Tensor:
    """Pair constants of an exact signed distance classifier."""
    return torch.ones(classes, classes, dtype=torch.float64) - torch.eye(classes).double()


def from_logits(*rows: list[float]) -> Certificate:
    logits = torch.tensor(rows)
    return certificate_from_logits(logits, ones(logits.shape[1]))


# --- Against the truth -------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "dtype"), EVERY)
def test_the_radius_is_a_lower_bound_of_the_distance(name: str, dtype: torch.dtype) -> None:
    truth = EXACT[name](dtype)
    certificate = certify(truth.network, truth.inputs)
    gap = truth.distance(truth.inputs) - certificate.radius
    assert certificate.radius.dtype == torch.float64
    assert certificate.radius.min() > 0
    assert gap.min() >= 0  # without a tolerance: this is the claim
    if truth.tight:
        assert gap.max() <= TIGHTNESS
    else:
        assert gap.max() > 0.01


def test_inside_a_box_the_radius_is_the_distance() -> None:
    truth = box()
    inside = truth.network(truth.inputs).argmax(1) == 1
    certificate = certify(truth.network, truth.inputs)
    gap = (truth.distance(truth.inputs) - certificate.radius)[inside]
    assert inside.sum() >= 24
    assert gap.min() >= 0
    assert gap.max() <= TIGHTNESS


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_margin_of_a_signed_distance_classifier_is_the_distance(
    classes: int, dtype: torch.dtype
) -> None:
    truth = unit_affine(dtype, classes)
    certificate = certify(truth.network, truth.inputs)
    rounding = 1e-6 if dtype == torch.float32 else EXACTNESS  # of the stored rows
    assert (certificate.margin - truth.distance(truth.inputs)).abs().max() <= rounding
    assert set(certificate.label.tolist()) == set(range(classes))


@pytest.mark.parametrize("std", [[0.25, 0.25, 0.25], [0.5, 0.125, 2.0]])
def test_the_normalisation_divides_the_radius(std: list[float]) -> None:
    head = unit_affine(in_shape=(3,), classes=3).network.head
    mean, deviation = torch.rand(3).double(), torch.tensor(std).double()
    plain, network = (
        FrozenNetwork([head], (3,)),
        FrozenNetwork([Normalize(mean, deviation), head], (3,)),
    )
    x = torch.rand(20, 3, dtype=torch.float64)
    expected = certify(plain, (x - mean) / deviation).radius * min(std)
    assert (certify(network, x).radius - expected).abs().max() <= TIGHTNESS
    # Folded into the rows it is affine, so the true distance is known.
    folded = Dense(head.weight / deviation, head.bias - head.weight @ (mean / deviation))
    distance = certify(FrozenNetwork([folded], (3,)), x).radius
    slack = distance - certify(network, x).radius
    assert slack.min() >= -TIGHTNESS
    assert (slack.max() <= TIGHTNESS) == (len(set(std)) == 1)


def test_the_slack_is_subtracted_before_the_division() -> None:
    """By hand: 2 (alpha + beta norm) off the margin, L + beta S_0 below it, rounded down."""
    bounds = RoundingBounds(
        "by hand", 0.5 * ones(2), 0.0625 * ones(2), 0.125 * ones(2), 4.0,
        Affine(), 1.0, 1.0, (),
    )  # fmt: skip
    logits = torch.tensor([[3.0, 2.0], [3.0, 2.0]])
    norms = torch.tensor([1.0, 8.0], dtype=torch.float64)
    certificate = sound_certificate(logits, bounds, norms)
    assert certificate.slack.tolist() == [0.375, 2.125]
    assert certificate.margin.tolist() == [1.0, 1.0]
    assert 0.625 - 1e-11 <= float(certificate.radius[0]) < 0.625
    assert certificate.radius[1] == 0.0


def test_nothing_is_claimed_near_overflow() -> None:
    bounds = RoundingBounds(
        "by hand", ones(2), 0.0 * ones(2), 0.0 * ones(2), 1.0,
        Affine(1.0, 2.0), 8.0, 1.0, (),
    )  # fmt: skip
    logits = torch.tensor([[3.0, 2.0], [3.0, 2.0]])
    certificate = sound_certificate(logits, bounds, torch.tensor([2.4, 2.6]).double())
    assert (certificate.radius > 0).tolist() == [True, False]  # the ball reaches a norm of r more


def test_certificates_are_compared_as_objects() -> None:
    """Of tensors there is no one answer to whether they are equal."""
    network = FrozenNetwork([Dense(torch.eye(2), torch.zeros(2))], (2,))
    x = torch.rand(3, 2)
    found, closest = certify(network, x), closest_adversarial(network, x)
    assert found != certify(network, x)
    assert found == found
    assert closest != closest_adversarial(network, x)
    assert len({found, closest}) == 2


def test_the_nearest_class_need_not_be_the_runner_up() -> None:
    """The radius is a minimum over all classes: another one may be nearer by its constant."""
    constants = torch.tensor([[0.0, 1.0, 4.0], [1.0, 0.0, 4.0], [4.0, 4.0, 0.0]]).double()
    certificate = certificate_from_logits(torch.tensor([[3.0, 2.0, 1.0]]), constants)
    assert (certificate.label.item(), certificate.runner_up.item()) == (0, 1)
    assert (certificate.margin.item(), certificate.radius.item()) == (1.0, 0.5)


@given(st.integers(2, 8), st.integers(0, 999))
def test_the_radius_by_hand(classes: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(3, classes, generator=generator)
    constants = torch.rand(classes, classes, generator=generator, dtype=torch.float64) + 0.1
    certificate = certificate_from_logits(logits, constants)
    for row, values in enumerate(logits.double().tolist()):
        label = max(range(classes), key=values.__getitem__)
        others = [k for k in range(classes) if k != label]
        radius = min((values[label] - values[k]) / float(constants[label, k]) for k in others)
        runner_up = max(others, key=values.__getitem__)
        assert certificate.label[row] == label
        assert certificate.runner_up[row] == runner_up
        assert certificate.margin[row] == values[label] - values[runner_up]
        assert float(certificate.radius[row]) == pytest.approx(radius, rel=1e-15)
        assert certificate.slack[row] == 0


def test_certify_does_not_depend_on_the_batch() -> None:
    truth = affine(torch.float32)
    whole = certify(truth.network, truth.inputs)
    for index in range(5):
        single = certify(truth.network, truth.inputs[index : index + 1])
        assert single.label[0] == whole.label[index]
        assert abs(float(single.radius[0] - whole.radius[index])) <= EXACTNESS


def test_certify_takes_any_floating_dtype_and_leaves_it_alone() -> None:
    truth = affine(torch.float32)
    for dtype in (torch.float16, torch.float32, torch.float64):
        x = truth.inputs.to(dtype)
        given_x = x.clone()
        expected = certify(truth.network, x.double())
        assert torch.equal(certify(truth.network, x).radius, expected.radius)
        assert torch.equal(x, given_x)


# --- What is never claimed ---------------------------------------------------------------------


@pytest.mark.parametrize("values", [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [2.0, 2.0, -1.0, 0.5]])
def test_ties_of_the_largest_logit_get_radius_zero(values: list[float]) -> None:
    for row in set(itertools.permutations(values)):
        certificate = from_logits(list(row))
        assert certificate.radius.item() == 0.0
        assert certificate.margin.item() == 0.0
        assert certificate.label.item() == row.index(max(values))
        assert certificate.label.item() == torch.tensor(row).argmax()
        assert certificate.runner_up.item() != certificate.label.item()
        assert row[int(certificate.runner_up)] == max(values)


def test_a_tie_of_many_classes_lists_the_lowest_first() -> None:
    logits = torch.zeros(3, 1000)
    logits[1, 7:] = 1.0
    logits[2, 998:] = 1.0
    certificate = certificate_from_logits(logits, ones(1000))
    assert certificate.label.tolist() == [0, 7, 998]
    assert certificate.runner_up.tolist() == [1, 8, 999]
    assert certificate.radius.tolist() == [0.0, 0.0, 0.0]


def test_a_tie_below_the_largest_logit_keeps_the_radius() -> None:
    for row in set(itertools.permutations([3.0, 1.0, 1.0])):
        assert from_logits(list(row)).radius.item() == 2.0


@pytest.mark.parametrize("row", [[0.0, -0.0], [-0.0, 0.0], [-0.0, 0.0, -1.0]])
def test_zero_and_minus_zero_tie(row: list[float]) -> None:
    certificate = from_logits(row)
    assert certificate.radius.item() == 0.0
    assert not math.copysign(1.0, certificate.radius.item()) < 0
    assert certificate.label.item() == 0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_logits_that_are_not_finite_get_nothing(position: int, value: float) -> None:
    row = [3.0, 2.0, 1.0]
    row[position] = value
    certificate = from_logits(row, [3.0, 2.0, 1.0])
    assert certificate.radius.tolist() == [0.0, 1.0]
    assert certificate.margin.tolist() == [0.0, 1.0]
    assert certificate.label.tolist() == [-1, 0]
    assert certificate.runner_up.tolist() == [-1, 1]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308])
def test_inputs_that_are_not_finite_get_nothing(value: float) -> None:
    truth = sphere()
    x = truth.inputs[:2].clone()
    x[0, 1] = value
    certificate = certify(truth.network, x)
    assert certificate.radius[0] == 0.0
    assert certificate.label[0] == -1
    assert certificate.radius[1] > 0


def test_equal_rows_of_the_head_never_divide_zero_by_zero() -> None:
    weight = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    network = FrozenNetwork([Dense(weight, torch.zeros(3, dtype=torch.float64))], (2,))
    x = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    certificate = certify(network, x)
    assert certificate.radius[0] == 0.0
    assert float(certificate.radius[1]) == pytest.approx(1.0, abs=TIGHTNESS)


# --- The closed form ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["affine", "unit_affine", "stretched_affine", "sphere", "polyhedron"]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_closed_form_lands_on_the_boundary_and_flips(name: str, dtype: torch.dtype) -> None:
    """Where the runner-up decides; general rows may have a nearer third class."""
    truth = EXACT[name](dtype)
    certificate = certify(truth.network, truth.inputs)
    found = closest_adversarial(truth.network, truth.inputs)
    start = truth.inputs.double()
    travelled = (found.point.double() - start).flatten(1).norm(dim=1)
    distance = truth.distance(truth.inputs)
    nearest = (travelled - distance).abs() <= 1e-6
    assert nearest.sum() >= len(start) // 2
    assert bool(nearest.all()) or name in ("affine", "stretched_affine")
    assert bool(found.flipped.all())
    # ``point`` is rounded to the dtype of x; ``remaining`` and the ray are float64.
    assert (found.remaining[nearest].abs()).max() <= BOUNDARY * 10
    assert (found.flipped_distance - distance)[nearest].abs().max() <= EXACTNESS * 10
    assert (found.flipped_distance >= distance - EXACTNESS).all()
    wide = truth.network.in_float64()
    assert not bool((wide(found.flipped_point).argmax(1) == certificate.label).any())
    assert found.point.dtype == truth.inputs.dtype


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_closed_form_is_the_closest_point(classes: int) -> None:
    truth = unit_affine(torch.float64, classes)
    found = closest_adversarial(truth.network, truth.inputs)
    assert (found.point - truth.closest(truth.inputs)).abs().max() <= EXACTNESS
    assert found.point.shape == truth.inputs.shape
    labels = truth.network(truth.inputs).argmax(1)
    assert int(labels.max()) == classes - 1


def test_the_step_is_divided_by_the_squared_gradient() -> None:
    """Behind a scalar normalisation gradients are 1 / std long."""
    head = unit_affine(in_shape=(3,), classes=3).network.head
    layer = Normalize(torch.zeros(3).double(), torch.full((3,), 0.25).double())
    network = FrozenNetwork([layer, head], (3,))
    x = torch.rand(20, 3, dtype=torch.float64)
    found = closest_adversarial(network, x)
    assert found.remaining.abs().max() <= BOUNDARY
    travelled = (found.point - x).norm(dim=1)
    assert (travelled - certify(network, x).radius).abs().max() <= TIGHTNESS


def test_a_ray_that_meets_no_boundary_says_so() -> None:
    """Beyond a corner of the box the closed form aims past the box."""
    truth = box()
    x = torch.tensor([[0.2 + 3.0, -0.1 + 3.0, 0.4 + 3.0]], dtype=torch.float64)
    found = closest_adversarial(truth.network, x)
    assert not bool(found.flipped)
    assert found.remaining.item() > 1.0
    assert found.flipped_distance.item() == math.inf
    assert torch.equal(found.flipped_point, found.point)


def test_a_flip_short_of_or_beyond_the_closed_form_is_found_on_the_ray() -> None:
    """On a parabola-like hinge, f = max(2 u, u + 1) with u the way to go, slope 2 then 1."""
    steep = torch.tensor([[2.0], [1.0]], dtype=torch.float64)
    shift = torch.tensor([-2.0, 0.0], dtype=torch.float64)
    top = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    layers = [Dense(steep, shift), GroupSort(2), Dense(top, torch.zeros(2).double())]
    network = FrozenNetwork(layers, (1,))  # f_0 - f_1 = max(2 x - 2, x), zero at 0, kink at 2
    found = closest_adversarial(network, torch.tensor([[3.0], [1.5]], dtype=torch.float64))
    assert found.point.flatten().tolist() == pytest.approx([1.0, 0.0], abs=BOUNDARY)
    assert found.remaining.tolist() == pytest.approx([1.0, 0.0], abs=BOUNDARY)
    assert found.flipped.tolist() == [True, True]
    assert found.flipped_distance.tolist() == pytest.approx([3.0, 1.5], abs=BOUNDARY)
    assert bool((found.flipped_point <= 0).all())
    assert certify(network, torch.tensor([[3.0]]).double()).margin.item() * RAY_REACH > 3.0


def test_a_tie_moves_nowhere() -> None:
    truth = unit_affine()
    x = truth.closest(truth.inputs)[:1]
    found = closest_adversarial(truth.network, x)
    assert (found.point - x).abs().max() <= BOUNDARY
    assert abs(found.remaining.item()) <= BOUNDARY


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_inputs_that_are_not_finite_do_not_flip(value: float) -> None:
    truth = unit_affine()
    x = truth.inputs[:2].clone()
    x[0, 0, 0, 0] = value
    found = closest_adversarial(truth.network, x)
    assert found.flipped.tolist() == [False, True]
    assert found.flipped_distance[0] == math.inf


def test_the_closed_form_leaves_gradients_and_inputs_alone() -> None:
    truth = affine()
    x = truth.inputs.clone().requires_grad_(True)
    with torch.no_grad():
        found = closest_adversarial(truth.network, x)
    assert x.grad is None
    assert torch.equal(x.detach(), truth.inputs)
    assert not found.point.requires_grad
    assert not found.flipped_distance.requires_grad


def test_all_kinds_of_inputs_get_one_certificate() -> None:
    truth = affine(torch.float32)
    x, y = truth.inputs, torch.zeros(len(truth.inputs), dtype=torch.int64)
    expected = certify(truth.network, x)
    samples = Samples(x, y)
    pairs = TensorDataset(x, y)
    kinds = (
        (x, y), (x.numpy(), y.numpy()), samples, pairs, TensorDataset(x), Dataset("tiny", samples,
        samples, ("a", "b")), DataLoader(pairs, batch_size=3), DataLoader(x, batch_size=2),
    )  # fmt: skip
    for inputs in kinds:
        found = certify(truth.network, inputs)
        assert torch.equal(found.label, expected.label)
        assert torch.equal(found.runner_up, expected.runner_up)
        assert (found.radius - expected.radius).abs().max() <= TIGHTNESS
        assert found.slack.shape == expected.slack.shape
    with pytest.raises(ValueError, match="x must yield a batch at least, got none; add inputs"):
        certify(truth.network, TensorDataset(x[:0]))


def test_a_point_without_a_gradient_does_not_move() -> None:
    head = Dense(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([5.0, 0.0]))
    x = torch.tensor([[1.0, 2.0]])
    found = closest_adversarial(FrozenNetwork([head], (2,)), x, domain="any")
    assert torch.equal(found.point, x)
    assert (found.flipped.tolist(), found.remaining.tolist()) == ([False], [5.0])


def test_one_class_has_no_boundary() -> None:
    frozen = FrozenNetwork([Dense(torch.eye(2)[:1], torch.zeros(1))], (2,))
    for ask in (certify, closest_adversarial):
        with pytest.raises(ValueError, match="at least 2 classes, got 1"):
            ask(frozen, torch.rand(1, 2), domain="any")
