"""Inputs that break certificates whose bounds forget a term: by kind, and by a sweep of extremes.

Every case states what is forgotten; the truth and the distances are exact.
"""

from fractions import Fraction
from itertools import product

import pytest
import torch
from extremes import is_inside
from sweeps import parts, swept
from torch import Tensor

from unitmargin import certify
from unitmargin.certificates.certify import sound_certificate
from unitmargin.frozen import CircularConvolution, Dense, FrozenNetwork
from unitmargin.frozen.profiles import PROFILES
from unitmargin.frozen.rounding import RoundingBounds
from unitmargin.frozen.transforms import transform_error
from unitmargin.layers.arithmetic import SMALLEST_NORMAL, Affine, gamma
from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.bounds import LayerConstants, LayerRounding
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.fourier import frequencies
from unitmargin.layers.l2_pool import L2Pool
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten

DENORMAL = {torch.float32: 2.0**-149, torch.float64: 2.0**-1074}
"""The smallest number of a type."""

STEEP = 2.0**40
"""A norm that lifts what underflow loses in a layer before it."""


def holds(network: FrozenNetwork, x: Tensor, other: Tensor, profile: str) -> bool:
    """Whether no certificate at ``x`` is contradicted by ``other``."""
    chosen = PROFILES[profile]
    certificate = certify(network, x, profile)
    label = network.deployed(chosen.name)(other.to(chosen.dtype)).argmax(1)
    radius = float(certificate.radius[0])
    assert torch.equal(other.to(chosen.dtype).double(), other.double())
    return (
        radius == 0.0
        or int(label[0]) == int(certificate.label[0])
        or not is_inside(x[0], other[0], radius)
    )


def scaled_identity(map_size: tuple[int, int], scale: float, dtype: torch.dtype) -> FixedLayer:
    kept = frequencies(*map_size)
    pairs = torch.zeros(len(kept.pairs), 2, 1, 1, dtype=dtype)
    pairs[:, 0] = scale
    real = torch.full((len(kept.real), 1, 1), scale, dtype=dtype)
    return CircularConvolution(real, pairs, torch.zeros(1, dtype=dtype), map_size)


def coordinates(features: int, dtype: torch.dtype = torch.float32) -> Dense:
    """A head that compares the first two features."""
    return Dense(torch.eye(2, features, dtype=dtype), torch.zeros(2, dtype=dtype))


# --- Every bound has a range ----------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1e-300, torch.nan])
def test_a_bound_is_a_number_of_at_least_zero(value: float) -> None:
    none = Affine()
    for make in (
        lambda: Affine(value),
        lambda: Affine(0.0, value),
        lambda: LayerConstants(value),
        lambda: LayerConstants(1.0, value),
        lambda: LayerConstants(1.0, 1.0, value),
        lambda: LayerRounding("x", value, none, none, none, none),
        lambda: Affine(1.0, 1.0) * value,
    ):
        with pytest.raises(ValueError, match="must be a number >= 0, got"):
            make()
    good, bad = (
        torch.ones(2, 2).double(),
        torch.tensor([[0.0, value], [1.0, 0.0]], dtype=torch.float64),
    )
    for pairs in ((bad, good, good), (good, bad, good), (good, good, bad)):
        with pytest.raises(ValueError, match="of a pair of classes must be a number >= 0"):
            RoundingBounds("x", *pairs, 1.0, none, 1.0, 1.0, ())


def test_a_layer_with_a_negative_error_is_refused() -> None:
    class Wrong(FixedLayer):
        kind = "wrong"

        def forward(self, x: Tensor) -> Tensor:
            return x

        def rounding(self, unit: float) -> float:
            return -unit

    with pytest.raises(ValueError, match="must be a number >= 0"):
        certify(FrozenNetwork([Wrong(), coordinates(2)], (2,)), torch.ones(1, 2))


# --- Numbers met on the way -----------------------------------------------------------------------


def test_products_of_the_head_do_not_overflow_inside_a_ball() -> None:
    """The label's own logit is finite, and the other one is inf - inf from x = 256 on."""
    steep = Dense(STEEP * torch.eye(3), torch.zeros(3))
    head = Dense(torch.tensor([[0.0, 0, STEEP], [STEEP, -STEEP, 0.0]]), torch.zeros(2))
    network = FrozenNetwork([steep, steep, head], (3,))
    below = 256.0 - 2.0**-16
    x, other = torch.tensor([[below, below, 1.0]]), torch.tensor([[256.0, 256.0, 1.0]])
    assert bool(network.deployed("float32")(other).isnan().any())
    assert holds(network, x, other, "float32")


@pytest.mark.parametrize("map_size", [(8, 8), (16, 16), (1, 67)])
def test_sums_of_a_transform_do_not_overflow_before_a_small_factor(
    map_size: tuple[int, int],
) -> None:
    pixels = map_size[0] * map_size[1]
    layer = scaled_identity(map_size, 2.0**-60, torch.float32)
    network = FrozenNetwork([layer, Flatten(), coordinates(pixels)], (1, *map_size))
    x = torch.full((1, 1, *map_size), 2.0**125)
    x[0, 0, 0, 0] *= 1.5
    assert certify(network, x, "float32").radius[0] == 0.0
    assert certify(network, x * 2.0**-60, "float32").radius[0] > 0.0
    largest = network.proof(PROFILES["float32"]).bounds.layers[0].largest
    assert largest.slope >= pixels**0.5  # what an FFT adds up before it scales


def test_differences_of_a_normalisation_do_not_overflow() -> None:
    layer = Normalize(torch.tensor([-1.0e38, 0.0]), torch.full((2,), 2.0**100))
    network = FrozenNetwork([layer, Dense(torch.eye(2).flip(0), torch.zeros(2))], (2,))
    x, other = torch.tensor([[2.40e38, 1e38]]), torch.tensor([[2.41e38, 1e38]])
    assert bool(network.deployed("float32")(other).isnan().any())
    assert holds(network, x, other, "float32")


def test_inputs_of_a_layer_count_as_its_output_does() -> None:
    """A weight of 2^-60 makes everything behind the input small."""
    network = FrozenNetwork([Dense(2.0**-60 * torch.eye(2), torch.zeros(2)), coordinates(2)], (2,))
    largest = network.proof(PROFILES["float32"]).bounds.largest
    assert largest.slope >= 1.0


# --- What underflow loses is passed on ------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_what_a_normalisation_loses_is_passed_on(profile: str) -> None:
    dtype = PROFILES[profile].dtype
    steep = Dense(STEEP * torch.eye(2, dtype=dtype), torch.zeros(2, dtype=dtype))
    layer = Normalize(torch.zeros(2, dtype=dtype), torch.full((2,), 3.0, dtype=dtype))
    network = FrozenNetwork([layer, steep, coordinates(2, dtype)], (2,))
    x = torch.tensor([[5.0, 4.0]], dtype=dtype) * DENORMAL[dtype]
    assert holds(network, x, x.flip(1), profile)
    row = network.proof(PROFILES[profile]).bounds.layers[0]
    assert row.error.constant >= DENORMAL[dtype]
    tiny = torch.full((1, 2), DENORMAL[dtype], dtype=torch.float64)
    assert float(network.proof(PROFILES[profile]).input_norms(tiny)[0]) > 0.0


def test_what_a_difference_loses_is_divided_by_the_deviation() -> None:
    layer = Normalize(torch.zeros(2), torch.full((2,), 2.0**-60))
    rows = FrozenNetwork([layer, coordinates(2)], (2,)).proof(PROFILES["float32"]).bounds.layers
    assert rows[0].error.constant >= 2.0**60 * SMALLEST_NORMAL[torch.float32]


@pytest.mark.parametrize("profile", ["float32", "float64"])
def test_what_a_transform_loses_is_passed_on(profile: str) -> None:
    dtype = PROFILES[profile].dtype
    unit = DENORMAL[dtype]
    layer = scaled_identity((1, 3), STEEP, dtype)
    network = FrozenNetwork([layer, Flatten(), coordinates(3, dtype)], (1, 1, 3))
    points = torch.tensor(list(product(range(-3, 4), repeat=3)), dtype=torch.float64) * unit
    x = points.to(dtype).view(-1, 1, 1, 3)
    assert float(network.deployed(profile)(x).abs().max()) > 0.0
    assert not bool((certify(network, x, profile).radius > 0).any())


def test_underflow_of_a_convolution_by_hand() -> None:
    """(9) without a bias: what each of the three steps loses, times what follows it."""
    layer = scaled_identity((2, 2), STEEP, torch.float32)
    profile = PROFILES["float32"]
    network = FrozenNetwork([layer, Flatten(), coordinates(4)], (1, 2, 2))
    tiny, turn = SMALLEST_NORMAL[torch.float32], transform_error(layer.transform, profile.unit)
    turned = 4.0 * (24.0 * 4**2 + 4.0) * tiny
    summed = turned * STEEP * (1.0 + gamma(2, profile.unit)) + 4.0 * (2.0 + 4.0) * tiny * 2.0
    found = network.proof(profile).bounds.layers[0].error.constant
    assert found == pytest.approx(summed * (1.0 + turn) + turned, rel=1e-9, abs=0.0)


def test_underflow_of_what_follows_a_transform() -> None:
    """Many channels lose more in their products than in the transforms, and no weight hides it."""
    real = torch.zeros(1, 1, 10_000)
    layer = CircularConvolution(real, torch.zeros(0, 2, 1, 10_000), torch.zeros(1), (1, 1))
    errors = layer.errors(LayerConstants(0.0), Affine(), PROFILES["float32"])
    assert errors[0].constant >= 2 * 10_000 * SMALLEST_NORMAL[torch.float32]
    many = scaled_identity((8, 8), 0.0, torch.float32)
    errors = many.errors(LayerConstants(0.0), Affine(), PROFILES["float32"])
    assert errors[0].constant >= 64**2 * SMALLEST_NORMAL[torch.float32]


@pytest.mark.parametrize("pool", [ScaledAveragePool(2), L2Pool(2)], ids=lambda pool: pool.kind)
def test_what_an_average_loses_is_paid_for(pool: FixedLayer) -> None:
    network = FrozenNetwork([pool, Flatten(), coordinates(4)], (1, 4, 4))
    row = network.proof(PROFILES["float32"]).bounds.layers[0]
    assert row.error.constant >= DENORMAL[torch.float32] * 4


def test_a_layer_that_rounds_pays_for_underflow_too() -> None:
    class Third(FixedLayer):
        kind = "third"

        def forward(self, x: Tensor) -> Tensor:
            return x / 3.0

        def rounding(self, unit: float) -> float:
            return unit

    network = FrozenNetwork([Third(), coordinates(2)], (2,))
    error = network.proof(PROFILES["float32"]).bounds.layers[0].error
    assert error.constant >= DENORMAL[torch.float32]


# --- Bookkeeping in float64 -----------------------------------------------------------------------


def test_constants_scale_with_tiny_weights() -> None:
    """A head and a bias of 2^-600 times others have 2^-600 times their constants."""
    scale, features = 2.0**-600, 12
    rows = torch.stack((torch.randn(features), torch.zeros(features))).double()
    hidden = Dense(torch.eye(features).double(), torch.ones(features).double())

    def bounds(factor: float) -> RoundingBounds:
        layer = Dense(hidden.weight, hidden.bias * factor)
        head = Dense(rows * factor, torch.zeros(2).double())
        return FrozenNetwork([layer, head], (features,)).proof(PROFILES["float64"]).bounds

    small, plain = bounds(scale), bounds(1.0)
    assert small.beta[0, 1] == pytest.approx(float(plain.beta[0, 1]) * scale, rel=1e-9, abs=0.0)
    assert small.layers[0].error.constant >= float(hidden.bias.norm()) * scale * 2.0**-53


def test_a_tiny_head_is_certified_by_its_own_slack() -> None:
    """Inputs on the boundary of a head of 2^-600: one unit in the last place changes the label."""
    scale, features = 2.0**-600, 12
    row = torch.randn(features).double()
    head = Dense(torch.stack((row, torch.zeros_like(row))) * scale, torch.zeros(2).double())
    network = FrozenNetwork([head], (features,))
    x = torch.rand(60, features).double()
    x[:, -1] = -(row[:-1] * x[:, :-1]).sum(1) / row[-1]
    found = certify(network, x)
    changed = 0
    for towards in (torch.inf, -torch.inf):
        near = x.clone()
        near[:, 0] = torch.nextafter(near[:, 0], torch.full_like(near[:, 0], towards))
        other = network(near).argmax(1) != found.label
        changed += int(other.sum())
        for index in other.nonzero().flatten().tolist():
            radius = float(found.radius[index])
            assert radius == 0.0 or not is_inside(x[index], near[index], radius)
    assert changed >= 10
    assert certify(network, torch.eye(features).double()).radius.min() > 0


def test_inputs_whose_squares_are_lost_have_a_norm() -> None:
    weight = torch.tensor([[1 / 3, 1 / 7, -10 / 21], [0.0, 0.0, 0.0]], dtype=torch.float64)
    network = FrozenNetwork([Dense(weight, torch.zeros(2).double())], (3,))
    x = torch.rand(200, 3).double()
    x[:, 2] = -(weight[0, :2] * x[:, :2]).sum(1) / weight[0, 2]
    tiny = certify(network, x * 2.0**-600)
    assert torch.allclose(tiny.slack * 2.0**600, certify(network, x).slack, rtol=1e-6)
    assert int((tiny.radius > 0).sum()) == int((certify(network, x).radius > 0).sum())


@pytest.mark.parametrize("exponent", [-1060, -1056, -1030])
def test_no_radius_is_denormal(exponent: int) -> None:
    weight = torch.tensor([[-(2.0**59)], [2.0**59]], dtype=torch.float64)
    network = FrozenNetwork([Dense(weight, torch.zeros(2).double())], (1,))
    x = torch.full((1, 1), 2.0**exponent, dtype=torch.float64)
    assert holds(network, x, torch.zeros_like(x), "float64")
    assert certify(network, x).radius[0] == 0.0
    ordinary = certify(network, torch.full_like(x, 2.0**-1000))
    assert ordinary.radius[0] >= SMALLEST_NORMAL[torch.float64]


def test_a_lipschitz_bound_that_underflows_is_not_zero() -> None:
    """Norms of 2^-600 and 1.5 2^-474: their product lies between two denormal numbers."""
    layers = [
        Dense(2.0**-600 * torch.eye(2).double(), torch.zeros(2).double()),
        Dense(1.5 * 2.0**-474 * torch.eye(2).double(), torch.tensor([2.0**-300, 0.0]).double()),
    ]
    bounds = FrozenNetwork(layers, (2,)).proof(PROFILES["float64"]).bounds
    assert float(bounds.lipschitz[0, 1]) / DENORMAL[torch.float64] >= 1.5 * 2.0**0.5


def test_a_slope_that_underflows_is_not_lost() -> None:
    """beta S_0 is 1.25 times the smallest number, which float64 rounds down; L is 0."""
    pairs = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    beta, scale = 1.25 * 2.0**-600, 2.0**-474
    bounds = RoundingBounds(
        "by hand", 0.0 * pairs, 0.0 * pairs, beta * pairs, scale, Affine(), 1.0, 1.0, ()
    )
    logits = torch.tensor([[2.0**-300, 0.0]], dtype=torch.float64)
    radius = float(sound_certificate(logits, bounds, torch.zeros(1).double()).radius[0])
    assert 0 < Fraction(radius) * Fraction(beta) * Fraction(scale) < Fraction(2.0**-300)


# --- The sweep ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seeds", "inputs"), parts(300), ids=str)
def test_no_bound_and_no_certificate_of_extreme_networks_is_contradicted(
    seeds: range, inputs: int
) -> None:
    """Each layer's error and norm, each pair's error, overflow, and labels inside the balls."""
    found, met = swept("extremes", seeds, inputs)
    assert not found
    assert met["networks"] >= 0.95 * len(seeds)  # the others have no proof
    assert met["networks with a certificate"] >= len(seeds) // 2
    assert met["evaluations compared"] >= 2 * inputs * len(seeds)
