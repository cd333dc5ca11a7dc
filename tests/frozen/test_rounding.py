"""T3 and T4: what is exact, and errors that stay below their bounds, layer by layer."""

import math
from fractions import Fraction

import pytest
import torch
from torch import Tensor

from unitmargin import UGNN, DenseUGNN, certify, freeze
from unitmargin.frozen import CircularConvolution, Dense, FrozenNetwork
from unitmargin.frozen.profiles import PROFILES, Profile
from unitmargin.frozen.transforms import TABLE_ERROR
from unitmargin.layers.activations import OPLU, Abs, GroupSort, MaxMin
from unitmargin.layers.arithmetic import gamma
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten, MaxPool, PixelUnshuffle

USELESS = 1e-6
"""A bound so far above every error seen would claim nothing of use."""

EXACT_LAYERS = [Abs(), MaxMin(), OPLU(), GroupSort(4), MaxPool(2), PixelUnshuffle(2), Flatten()]


def input_norms(network: FrozenNetwork, x: Tensor) -> Tensor:
    return network.proof(PROFILES["float64"]).input_norms(x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("layer", EXACT_LAYERS, ids=lambda layer: type(layer).__name__)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_t3_moving_and_comparing_is_exact(
    layer: FixedLayer, dtype: torch.dtype, layout: torch.memory_format
) -> None:
    shape = (1250, 8, 10, 10)  # a million numbers
    x = (torch.randn(shape) * 10.0 ** torch.randint(-4, 4, shape)).to(dtype)
    x = x.contiguous(memory_format=layout)
    assert torch.equal(layer(x).double(), layer(x.double()))
    assert layer.rounding(2.0**-24) == 0.0


def networks() -> dict[str, FrozenNetwork]:
    torch.manual_seed(3)
    normalize = Normalize(torch.tensor([0.4]), torch.tensor([0.3]))
    image = freeze(UGNN((1, 16, 16), 5, hidden=(80,), normalize=normalize))
    for layer in image.features():
        if hasattr(layer, "bias"):
            layer.bias.normal_(std=0.3)
    return {"image": image, "vector": freeze(DenseUGNN((200,), 4, hidden=(100, 60)))}


NETWORKS = networks()


def pair_errors(network: FrozenNetwork, profile: Profile, x: Tensor) -> Tensor:
    """Errors of all logit differences against float64, over their bounds."""
    bounds = network.proof(profile).bounds
    computed = network.deployed(profile.name)(x.to(profile.dtype)).double()
    exact = network.in_float64()(x.double())
    error = computed - exact
    differences = (error[:, :, None] - error[:, None, :]).abs()
    norms = input_norms(network, x)[:, None, None]
    allowed = bounds.alpha + bounds.beta * norms
    ratios: Tensor = (differences / allowed).flatten(1).max(1).values
    return ratios


@pytest.mark.parametrize("repeats", [1, pytest.param(100, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", ["float32", "float32-blocked"])
@pytest.mark.parametrize("key", NETWORKS)
def test_t4_pair_errors_stay_below_their_bound(
    key: str, name: str, scale: float, repeats: int
) -> None:
    """100,800 evaluations in all, a hundred times as many nightly."""
    network, profile = NETWORKS[key], PROFILES[name]
    for _ in range(repeats * {"image": 7, "vector": 49}[key]):
        ratios = pair_errors(network, profile, scale * torch.randn(300, *network.in_shape))
        assert USELESS < ratios.max() < 1


@pytest.mark.parametrize("name", ["float32", "float32-blocked"])
@pytest.mark.parametrize("key", NETWORKS)
def test_t4_errors_made_large_on_purpose_stay_below(key: str, name: str) -> None:
    """Hill climbing on the ratio by moves of one last place."""
    network, profile = NETWORKS[key], PROFILES[name]
    best = torch.randn(32, *network.in_shape)
    ratio = pair_errors(network, profile, best)
    start = float(ratio.mean())
    for _ in range(30):
        towards = torch.where(torch.rand_like(best) < 0.5, torch.inf, -torch.inf)
        moved = torch.nextafter(best, towards)
        found = pair_errors(network, profile, moved)
        better = found > ratio
        best = torch.where(better.view(-1, *(1,) * (best.ndim - 1)), moved, best)
        ratio = torch.where(better, found, ratio)
    assert float(ratio.mean()) > start
    assert ratio.max() < 1


def test_t4_the_order_of_summation_is_covered() -> None:
    weight, bias = torch.randn(3, 300), torch.randn(3)
    network = FrozenNetwork([Dense(weight, bias)], (300,))
    profile = PROFILES["float32"]
    bounds = network.proof(profile).bounds
    x = torch.randn(300)
    exact = weight.double() @ x.double() + bias.double()
    for seed in range(300):
        order = torch.randperm(300, generator=torch.Generator().manual_seed(seed))
        terms = weight[:, order] * x[order]
        computed = torch.zeros(3)
        for index in range(300):  # recursive summation, one rounding a step
            computed = computed + terms[:, index]
        error = (computed + bias).double() - exact
        pairs = (error[:, None] - error[None, :]).abs()
        allowed = bounds.alpha + bounds.beta * float(input_norms(network, x[None])[0])
        assert bool((pairs <= allowed).all())


def test_t4_one_dot_product_reaches_a_good_share_of_its_bound() -> None:
    """The worst case is real: 2^24 swallows every 1 that is added to it."""
    terms = 64
    weight = torch.stack((torch.ones(terms), torch.zeros(terms)))
    network = FrozenNetwork([Dense(weight, torch.zeros(2))], (terms,))
    x = torch.ones(1, terms)
    x[0, 0] = 2.0**24
    bounds = network.proof(PROFILES["float32"]).bounds
    total = torch.zeros(())
    for value in x[0]:
        total = total + value
    lost = abs(float(total) - math.fsum(x[0].tolist()))
    allowed = float(bounds.alpha[0, 1] + bounds.beta[0, 1] * input_norms(network, x)[0])
    assert lost == terms - 1
    assert 0.1 * allowed / terms**0.5 <= lost <= allowed


# --- Every term counts: T15 at the level of the bound -------------------------------------------


def test_t15_a_large_bias_of_the_head_is_paid_for() -> None:
    """Cancelling biases of 2^20: their sum is exact in no order of float32 additions."""
    weight = torch.randn(2, 4) * 1e-3
    network = FrozenNetwork([Dense(weight, torch.full((2,), 2.0**20))], (4,))
    x = torch.randn(400, 4)
    worst = pair_errors(network, PROFILES["float32"], x)
    assert worst.max() < 1
    bounds = network.proof(PROFILES["float32"]).bounds
    # The part without the bias is exceeded by the same errors.
    share = float(bounds.beta[0, 1] * input_norms(network, x).max() / bounds.alpha[0, 1])
    assert worst.max() > 100 * share


def test_t15_a_large_hidden_bias_is_paid_for() -> None:
    hidden = Dense(torch.eye(4), torch.full((4,), 2.0**20))
    back = Dense(torch.eye(4), torch.full((4,), -(2.0**20)))
    network = FrozenNetwork([hidden, back, Dense(torch.randn(2, 4), torch.zeros(2))], (4,))
    x = torch.randn(400, 4)
    worst = pair_errors(network, PROFILES["float32"], x)
    assert worst.max() < 1
    bounds = network.proof(PROFILES["float32"]).bounds
    share = float(bounds.beta[0, 1] * input_norms(network, x).max() / bounds.alpha[0, 1])
    assert worst.max() > 100 * share


def test_t15_the_last_layer_is_paid_for() -> None:
    weight = torch.randn(2, 3000)
    network = FrozenNetwork([Dense(weight, torch.zeros(2))], (3000,))
    assert pair_errors(network, PROFILES["float32"], torch.randn(200, 3000)).max() < 1
    bounds = network.proof(PROFILES["float32"]).bounds
    rows = float(weight.double().norm(dim=1).sum())
    assert float(bounds.beta[0, 1]) >= rows * 3001 * 2.0**-24


def test_bounds_of_one_layer_by_hand() -> None:
    """Equation (8) and (12) in rational arithmetic for a 1 x 1 network."""
    network = FrozenNetwork(
        [Dense(torch.tensor([[2.0]]), torch.tensor([3.0])),
         Dense(torch.tensor([[1.0], [-1.0]]), torch.tensor([5.0, 7.0]))], (1,),
    )  # fmt: skip
    bounds = network.proof(PROFILES["float32"]).bounds
    unit = Fraction(1, 2**24)
    g2, g4 = 2 * unit / (1 - 2 * unit), 4 * unit / (1 - 4 * unit)
    error = (2 * g2, 3 * g2)  # slope and constant after the hidden layer
    norm = (2 + error[0], 3 + error[1])
    expected_beta = 2 * error[0] + g4 * 2 * norm[0]
    expected_alpha = 2 * error[1] + g4 * (2 * norm[1] + 12)
    assert float(bounds.beta[0, 1]) == pytest.approx(float(expected_beta), rel=1e-9)
    assert float(bounds.alpha[0, 1]) == pytest.approx(float(expected_alpha), rel=1e-9)
    assert Fraction(float(bounds.beta[0, 1])) >= expected_beta
    assert Fraction(float(bounds.alpha[0, 1])) >= expected_alpha


def test_explain_adds_up_to_the_slack() -> None:
    network = NETWORKS["image"]
    for name in PROFILES:
        bounds = network.proof(PROFILES[name]).bounds
        lines = bounds.explain(3.0).splitlines()
        costs = [float(line.split()[-1]) for line in lines[1:]]
        assert len(costs) == len(network.layers) + 1
        worst = 2.0 * float((bounds.alpha + 3.0 * bounds.beta).max())
        assert sum(costs[:-1]) == pytest.approx(costs[-1], rel=0.05)
        assert costs[-1] == pytest.approx(worst, rel=0.02)


def test_a_layer_that_states_no_rounding_is_refused() -> None:
    class Half(FixedLayer):
        kind = "half"

        def forward(self, x: Tensor) -> Tensor:
            return 0.5 * x

    network = FrozenNetwork([Half(), Dense(torch.eye(2), torch.zeros(2))], (2,))
    with pytest.raises(ValueError, match="Half states no rounding error"):
        certify(network, torch.zeros(1, 2))


def test_a_normalisation_behind_another_layer_is_refused() -> None:
    layer = Normalize(torch.zeros(2), torch.ones(2))
    with pytest.raises(ValueError, match="must be the first layer of its network"):
        FrozenNetwork([Flatten(), layer, Dense(torch.eye(2), torch.zeros(2))], (2,))


def test_bounds_of_a_convolution_by_hand() -> None:
    """Equations (9), (10) and (12) in float64 for one channel on a 2 x 2 map."""
    layer = CircularConvolution(
        torch.full((4, 1, 1), 2.0), torch.zeros(0, 2, 1, 1), torch.tensor([3.0]), (2, 2)
    )
    head = Dense(torch.tensor([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]]), torch.zeros(2))
    profile = PROFILES["float32"]
    rows = FrozenNetwork([layer, Flatten(), head], (1, 2, 2)).proof(profile).bounds.layers
    unit = profile.unit
    eta = math.sqrt(8.0) * (TABLE_ERROR + unit) + gamma(4, unit) * 2.0  # || |B| || = 2
    slope = eta * 2.0 + gamma(2, unit) * 2.0 * (1 + eta)
    constant = gamma(4, unit) * 6.0  # the bias's norm is 3 sqrt(4)
    slope, constant = slope + eta * (2.0 + slope), constant + eta * (6.0 + constant)
    assert rows[0].error.slope == pytest.approx(slope, rel=1e-9)
    assert rows[0].error.constant == pytest.approx(constant, rel=1e-9)
    assert rows[0].total.slope == pytest.approx(slope, rel=1e-9)


def test_layers_in_float64_round_their_output() -> None:
    """One float32 rounding, and less than that again for all float64 ones."""
    network, profile = NETWORKS["image"], PROFILES["float32-blocked"]
    rows, wide = network.proof(profile).bounds.layers, network.deployed(profile.name).layers
    found = [row for row, layer in zip(rows, wide, strict=True) if "Wide" in type(layer).__name__]
    assert {row.kind for row in found} == {"circular_convolution", "dense"}
    for row in found:
        assert profile.unit * row.norm <= row.error.slope <= 2.1 * profile.unit * row.norm


def test_the_normalisation_pays_two_roundings() -> None:
    network, profile = NETWORKS["image"], PROFILES["float32"]
    error, relative = network.proof(profile).bounds.layers[0].error, gamma(2, profile.unit)
    assert relative <= error.slope <= relative * (1.0 + 1e-9)
    assert 2.0 * 2.0**-126 / 0.3 <= error.constant <= 2.0**-90  # two losses, one divided by std


@pytest.mark.parametrize("key", NETWORKS)
@pytest.mark.parametrize("name", PROFILES)
def test_norms_cover_the_activations(key: str, name: str) -> None:
    network, profile = NETWORKS[key], PROFILES[name]
    bounds = network.proof(profile).bounds
    z = torch.randn(200, *network.in_shape).to(profile.dtype)
    norms = input_norms(network, z)
    for layer, row in zip(network.deployed(profile.name).layers[:-1], bounds.layers, strict=False):
        z = layer(z)
        allowed = row.output.constant + row.output.slope * norms
        assert bool((z.double().flatten(1).norm(dim=1) <= allowed).all())


def test_errors_of_all_layers_add_up() -> None:
    """Each layer of norm 2 doubles the errors made before it."""
    layers = [Dense(2.0 * torch.eye(3), torch.ones(3)) for _ in range(3)]
    head = Dense(torch.eye(3), torch.zeros(3))
    rows = FrozenNetwork([*layers, head], (3,)).proof(PROFILES["float32"]).bounds.layers
    expected = 4.0 * rows[0].error.slope + 2.0 * rows[1].error.slope + rows[2].error.slope
    assert rows[2].total.slope == pytest.approx(expected, rel=1e-9)
    expected = 4.0 * rows[0].error.constant + 2.0 * rows[1].error.constant + rows[2].error.constant
    assert rows[2].total.constant == pytest.approx(expected, rel=1e-9)
