"""T5 to T8: the attack breaks naive certificates, and no sound one."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
import torch
from exact import unit_affine
from torch import Tensor

from unitmargin import UGNN, DenseUGNN, certify, freeze
from unitmargin.certificates.rounding_attack import (
    POWER,
    RoundingAttack,
    near_boundary,
    rounding_attack,
    strictly_inside,
)
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.frozen.profiles import PROFILES, Profile
from unitmargin.frozen.proof import Proof
from unitmargin.layers.activations import GroupSort

FEW = 250
"""Candidates where the attack is not the point."""

SINGLE = ["float32"]


def network(dtype: torch.dtype = torch.float32) -> FrozenNetwork:
    torch.manual_seed(5)
    frozen = freeze(DenseUGNN((64,), 10, hidden=(64, 32)))
    return frozen.to(dtype)


def points(count: int, scale: float = 0.5) -> Tensor:
    return scale * torch.randn(count, 64, generator=torch.Generator().manual_seed(6))


COUNTS = [125, pytest.param(2500, marks=pytest.mark.nightly)]
"""Points of each of two profiles, twice: 500 and 10,000 in all."""


@pytest.mark.parametrize("samples", COUNTS)
@pytest.mark.parametrize("name", PROFILES)
def test_t5_naive_certificates_break_and_sound_ones_do_not(name: str, samples: int) -> None:
    frozen = network()
    for inputs in (points(samples), near_boundary(frozen, points(samples), 1e-2)):
        found = rounding_attack(frozen, inputs, name)
        assert found.broken["sound"] == 0
        assert found.issued["sound"] >= 0.9 * samples
        assert found.broken["naive"] >= POWER * found.issued["naive"]
        assert found.has_power
        assert found.points == ()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", PROFILES)
def test_t5_weights_of_sixteen_bits(name: str, dtype: torch.dtype) -> None:
    frozen = network(dtype)
    found = rounding_attack(frozen, near_boundary(frozen, points(40), 1e-2), name, FEW)
    assert found.broken["sound"] == 0
    assert found.issued["sound"] >= 36


def test_t5_a_bound_without_its_slack_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """T15: without the rounding terms the sound radius is margin / L, and the attack says so."""
    original = FrozenNetwork.kept_proof

    def without(frozen: FrozenNetwork, profile: Profile) -> Proof:
        proof = original(frozen, profile)
        bounds = proof.bounds
        return proof._replace(bounds=replace(bounds, alpha=0 * bounds.alpha, beta=0 * bounds.beta))

    monkeypatch.setattr(FrozenNetwork, "kept_proof", without)
    frozen = network()
    x = near_boundary(frozen, points(40), 1e-4)
    found = rounding_attack(frozen, x, "float32", FEW)
    assert found.broken["sound"] > 0
    index, point = found.points[0]
    radius = float(certify(frozen, x, "float32").radius[index])
    assert strictly_inside(x[index], point, radius)


def test_an_attack_without_power_says_so() -> None:
    counts = {"naive": 100, "margin/L": 100, "sound": 100}
    attack = RoundingAttack("float32", 100, counts, {**counts, "naive": 4, "sound": 0}, ())
    assert not attack.has_power
    assert replace(attack, broken={**counts, "naive": 5}).has_power


def test_insideness_is_exact() -> None:
    x, point = torch.zeros(2), torch.tensor([3.0, 4.0])
    assert not strictly_inside(x, point, 5.0)
    assert strictly_inside(x, point, math.nextafter(5.0, 6.0))


# --- T6: known distances -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_t6_known_distances_of_affine_networks(seed: int) -> None:
    """Exactly, in rationals: the certificate is at most the distance, and at most a slack below."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randint(-8, 9, (2, 4), generator=generator).float()
    weight[1] = -weight[0]
    weight[0, 0] += 1.0  # never equal rows
    bias = torch.randint(-8, 9, (2,), generator=generator).float()
    frozen = FrozenNetwork([Dense(weight, bias)], (4,))
    x = torch.randint(-64, 65, (50, 4), generator=generator).float() / 16
    for name in PROFILES:
        found = certify(frozen, x, name)
        for row in range(len(x)):
            difference = [Fraction(a) - Fraction(b) for a, b in zip(*weight.tolist(), strict=True)]
            gap = sum(d * Fraction(v) for d, v in zip(difference, x[row].tolist(), strict=True))
            gap = abs(gap + Fraction(bias[0].item()) - Fraction(bias[1].item()))
            squared = gap**2 / sum(d * d for d in difference)
            radius = Fraction(float(found.radius[row]))
            assert radius**2 <= squared
            slack = float(found.slack[row]) / float(sum(d * d for d in difference)) ** 0.5
            assert float(radius) >= (float(squared) ** 0.5 - slack) * (1 - 1e-4)


def test_t6_the_largest_of_two_affine_functions() -> None:
    """f_0 - f_1 = max(x_0, x_1) - 1 below the boundary: distance 1 - max(x_0, x_1), exactly."""
    top = torch.tensor([[0.5, 0.0], [-0.5, 0.0]])
    frozen = FrozenNetwork([GroupSort(2), Dense(top, torch.tensor([-0.5, 0.5]))], (2,))
    x = torch.randint(-64, 64, (1000, 2)).float() / 64
    for name in PROFILES:
        found = certify(frozen, x, name)
        distance = 1.0 - x.double().amax(1)
        assert bool((found.radius <= distance).all())
        assert bool((found.radius >= distance * (1 - 1e-5) - found.slack).all())


@pytest.mark.parametrize("order", [4, 16])
def test_t6_hadamard_networks(order: int) -> None:
    """An orthogonal matrix of exact entries in front: distance 1 - max((H x)_0, (H x)_1)."""
    matrix = torch.ones(1, 1)
    while len(matrix) < order:
        top, bottom = torch.cat((matrix, matrix), 1), torch.cat((matrix, -matrix), 1)
        matrix = torch.cat((top, bottom))
    matrix = matrix / order**0.5
    head = torch.zeros(2, order)
    head[:, 0] = torch.tensor([0.5, -0.5])
    layers = [Dense(matrix, torch.zeros(order)), GroupSort(2), Dense(head, 0.5 - torch.arange(2.0))]
    layers[-1].bias.neg_()
    frozen = FrozenNetwork(layers, (order,))
    x = torch.randint(-64, 65, (1000, order)).float() / 256
    distance = 1.0 - (x.double() @ matrix.double().mT)[:, :2].amax(1)
    inside = distance > 0
    assert inside.sum() > 500
    for name in PROFILES:
        found = certify(frozen, x, name)
        assert bool((found.radius <= distance.abs()).all())
        assert bool((found.radius >= distance * (1 - 1e-5) - found.slack)[inside].all())


# --- T7: poisoned models -----------------------------------------------------------------------


def hidden_bias(exponent: int) -> FrozenNetwork:
    """A bias that the next layer takes away again: nothing of it is seen in exact arithmetic."""
    plain = network()
    layers = [*plain.features(), plain.head]
    first = layers[2]
    assert isinstance(first, Dense)
    size = first.weight.shape[0]
    shift = torch.full((size,), 2.0**exponent)
    eye, zero = torch.eye(size), torch.zeros(size)
    poison = [Dense(eye, shift), Dense(eye, -shift), Dense(eye, zero)]
    return FrozenNetwork([*layers[:3], *poison, *layers[3:]], plain.in_shape)


@pytest.mark.parametrize("exponent", [8, 11, 14, 18, 22, 26, 30])
@pytest.mark.parametrize("name", PROFILES)
def test_t7_hidden_biases(exponent: int, name: str) -> None:
    """210 points in all."""
    frozen = hidden_bias(exponent)
    found = rounding_attack(frozen, points(10), name, 2 * FEW)
    assert found.broken["sound"] == 0
    if name == "float32" and exponent == 14:
        assert found.broken["naive"] >= POWER * found.issued["naive"]
    if name != "float64" and exponent >= 18:
        assert found.issued["sound"] == 0


def order_detector(dtype: torch.dtype) -> FrozenNetwork:
    """1 + 2^24 - 2^24 in a dot product: 0 or 1 by the order of the sum."""
    weight = torch.tensor([[1.0, 2.0**24, -(2.0**24)], [0.0, 0.0, 0.0]], dtype=dtype)
    bias = torch.tensor([-0.5, 0.0], dtype=dtype)
    return FrozenNetwork([Dense(weight, bias)], (3,))


@pytest.mark.parametrize("name", SINGLE)
def test_t7_order_detectors_get_no_certificate(name: str) -> None:
    assert certify(order_detector(torch.float32), torch.ones(1, 3), name).radius[0] == 0.0
    assert certify(order_detector(torch.float32), torch.ones(1, 3)).radius[0] > 0.0


@pytest.mark.parametrize("name", PROFILES)
def test_t7_weights_at_half_a_last_place(name: str) -> None:
    """Products that end half-way between two numbers: each rounds as far as any can."""
    half = torch.full((2, 64), 1.0 + 2.0**-23)
    half[1] = -half[0]
    frozen = FrozenNetwork([Dense(half / 16, torch.zeros(2))], (64,))
    signs = torch.randint(0, 2, (50, 64), generator=torch.Generator().manual_seed(2)) * 2 - 1
    found = rounding_attack(frozen, signs * (0.5 + 2.0**-24), name, FEW)
    assert found.broken["sound"] == 0


# --- T8: certify on one execution, attack on another --------------------------------------------


EXECUTIONS: dict[str, Callable[[FrozenNetwork, Tensor], Tensor]] = {
    "batch of 1": lambda f, x: torch.cat([f(row[None]) for row in x]),
    "batches of 2": lambda f, x: torch.cat([f(rows) for rows in x.split(2)]),
    "batches of 7": lambda f, x: torch.cat([f(rows) for rows in x.split(7)]),
    "whole": lambda f, x: f(x),
    "column-major": lambda f, x: f(x.mT.contiguous().mT),
    "reversed": lambda f, x: f(x.flip(0)).flip(0),
    "float64": lambda f, x: f.in_float64()(x.double()),
}


@pytest.mark.parametrize("first", EXECUTIONS)
def test_t8_certificates_hold_across_executions(first: str) -> None:
    """The certified label of every point just inside the ball, by every other execution."""
    frozen = network()
    x = near_boundary(frozen, points(200), 1e-2)
    found = certify(frozen, x, "float32")
    labels = EXECUTIONS[first](frozen, x).argmax(1)
    certified = found.radius > 0
    assert certified.sum() >= 180
    assert torch.equal(labels[certified], found.label[certified])
    direction = near_boundary(frozen, x, 0.0).double() - x.double()
    direction = direction / direction.norm(dim=1, keepdim=True)
    edge = (x.double() + 0.999999 * found.radius[:, None] * direction).float()
    for second in EXECUTIONS.values():
        assert torch.equal(second(frozen, edge).argmax(1)[certified], found.label[certified])


@pytest.mark.parametrize("threads", [1, 2])
def test_t8_threads(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        frozen = network()
        found = rounding_attack(frozen, points(20), "float32", FEW)
        assert found.broken["sound"] == 0
    finally:
        torch.set_num_threads(before)


# --- T13: far from the unit box -----------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-3, 1.0, 255.0, 1e6, 1e20])
def test_t13_inputs_of_any_size(scale: float) -> None:
    truth = unit_affine(torch.float32, 5, in_shape=(12,))
    x = scale * torch.randn(1000, 12)
    distance = truth.distance(x)
    for name in PROFILES:
        found = certify(truth.network, x, name)
        assert bool((found.radius <= distance).all())
        assert bool(torch.isfinite(found.radius).all())


def test_t13_clipping_first_is_covered() -> None:
    """Clipping moves no two points apart, so the certificate of the clipped point holds."""
    frozen = network()
    x = points(1000, 2.0)
    clipped = x.clamp(-1, 1)
    found = certify(frozen, clipped, "float32")
    moved = (
        x
        + torch.nn.functional.normalize(torch.randn(1000, 64), dim=1)
        * 0.9
        * found.radius[:, None].float()
    )
    labels = frozen(moved.clamp(-1, 1)).argmax(1)
    assert torch.equal(labels[found.radius > 0], found.label[found.radius > 0])


# --- T12: inputs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 3e38, 1e38, 1e-45, -1e-40])
def test_t12_no_input_gets_a_radius_that_is_no_number(name: str, value: float) -> None:
    frozen = network()
    x = points(3)
    x[1, 5] = value
    found = certify(frozen, x, name)
    assert bool(torch.isfinite(found.radius).all())
    assert bool((found.radius >= 0).all())
    if not math.isfinite(value):
        assert found.radius[1] == 0.0


@pytest.mark.parametrize("name", PROFILES)
def test_t12_an_empty_batch(name: str) -> None:
    assert certify(network(), torch.zeros(0, 64), name).radius.shape == (0,)


def test_the_plain_call_contradicts_no_certificate() -> None:
    """At 1e-7 from the boundary, where the float32 evaluation of the same weights does."""
    torch.manual_seed(0)
    frozen = freeze(UGNN((1, 8, 8), 4, hidden=(60, 30)))
    x = near_boundary(frozen, torch.rand(300, 1, 8, 8), 1e-7)
    certificate = certify(frozen, x, domain="any")
    certified, label = certificate.radius > 0, certificate.label
    assert int(certified.sum()) > 250
    aim = near_boundary(frozen, x.double(), 0.0) - x.double()
    aim = aim / aim.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    edge = x.double() + 0.999 * certificate.radius.view(-1, 1, 1, 1) * aim
    for points in (x, x.double(), edge):
        assert torch.equal(frozen(points).argmax(1)[certified], label[certified])
    assert torch.equal(frozen(x), frozen.deployed()(x.double()))
    assert not torch.equal(frozen.network(x).argmax(1)[certified], label[certified])
