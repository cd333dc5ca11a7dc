"""Errors of average pools and convex combinations: by hand, and below their bounds in networks."""

from fractions import Fraction

import pytest
import torch
from peers import POISON, SHAPES, inputs, peer
from torch import Tensor

from unitmargin import certify
from unitmargin.certificates.rounding_attack import near_boundary, rounding_attack
from unitmargin.frozen import ConvexCombination, Dense, FrozenNetwork
from unitmargin.frozen.profiles import PROFILES
from unitmargin.layers.activations import Abs
from unitmargin.layers.arithmetic import Affine, gamma
from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.bounds import LayerRounding
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.l2_pool import L2Pool
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten

USELESS = 1e-6
"""A bound so far above every error seen would claim nothing of use."""

SINGLE = ["float32"]

UNIT = Fraction(1, 2**24)


def exact_gamma(roundings: int) -> Fraction:
    return roundings * UNIT / (1 - roundings * UNIT)


def only_row(layer: FixedLayer, head_inputs: int, *before: FixedLayer) -> LayerRounding:
    head = Dense(torch.eye(2, head_inputs), torch.zeros(2))
    shape = (1, 4, 4) if isinstance(layer, ScaledAveragePool | L2Pool) else (head_inputs,)
    network = FrozenNetwork([*before, layer, Flatten(), head], shape)
    return network.proof(PROFILES["float32"]).bounds.layers[len(before)]


def agrees(found: Affine, constant: Fraction, slope: Fraction) -> None:
    """Equal to nine digits, and never below."""
    assert found.slope == pytest.approx(float(slope), rel=1e-9)
    assert found.constant == pytest.approx(float(constant), rel=1e-9, abs=1e-28)
    assert Fraction(found.slope) >= slope
    assert Fraction(found.constant) >= constant


@pytest.mark.parametrize(("size", "features"), [(2, 4), (4, 1)])
def test_an_average_by_hand(size: int, features: int) -> None:
    row = only_row(ScaledAveragePool(size), features)
    assert row.norm == 1.0
    agrees(row.total, Fraction(0), exact_gamma(size**2 + 1))
    assert row.largest.slope >= size


@pytest.mark.parametrize(("size", "features", "roundings"), [(1, 16, 6), (2, 4, 7), (4, 1, 13)])
def test_a_pool_of_norms_by_hand(size: int, features: int, roundings: int) -> None:
    row = only_row(L2Pool(size), features)
    assert row.norm == 1.0
    agrees(row.total, Fraction(0), exact_gamma(roundings))
    assert 1.0 <= row.largest.slope <= 2.0 + 1e-5
    assert size**2 <= row.largest.constant <= size**2 + 1e-5


def combination() -> ConvexCombination:
    """0.25 x + 0.75 (4 (2 x + 3) + 5)"""
    layers = [
        Dense(torch.tensor([[2.0]]), torch.tensor([3.0])),
        Dense(torch.tensor([[4.0]]), torch.tensor([5.0])),
    ]
    return ConvexCombination(torch.tensor(0.25), layers)


def test_a_combination_by_hand() -> None:
    """Equations (8), (16) and (17) in rational arithmetic."""
    row = only_row(combination(), 1)
    g2, g3 = exact_gamma(2), exact_gamma(3)
    first = (3 * g2, 2 * g2)  # constant and slope
    norm = (3 + first[0], 2 + first[1])
    second = (g2 * (4 * norm[0] + 5), g2 * 4 * norm[1])
    total = (4 * first[0] + second[0], 4 * first[1] + second[1])
    norm = (4 * norm[0] + 5 + second[0], 4 * norm[1] + second[1])
    share, rest = Fraction(1, 4), Fraction(3, 4)
    paths = (rest * norm[0], share + rest * norm[1])
    error = (rest * total[0] + g3 * paths[0], rest * total[1] + g3 * paths[1])
    agrees(row.total, *error)
    assert Fraction(row.output.slope) >= paths[1] + error[1]
    assert row.output.slope == pytest.approx(float(paths[1] + error[1]), rel=1e-9)
    assert Fraction(row.norm) >= Fraction(25, 4)
    assert row.norm == pytest.approx(6.25, rel=1e-9)
    assert row.largest.slope >= row.output.slope
    assert [inner.kind for inner in row.inside] == ["dense", "dense"]
    agrees(row.inside[1].total, *total)


@pytest.mark.parametrize("share", [0.0, 1.0, 0.1])
def test_shares_at_both_ends_and_in_between(share: float) -> None:
    layer = ConvexCombination(torch.tensor(share), [Dense(torch.eye(1), torch.zeros(1))])
    row = only_row(layer, 1)
    stored = Fraction(float(layer.share))
    least = exact_gamma(3) + (1 - stored) * exact_gamma(2)
    assert least <= Fraction(row.total.slope) <= least * (1 + Fraction(1, 2**20))


def test_a_normalisation_in_a_branch_is_refused() -> None:
    with pytest.raises(ValueError, match="input normalisation must be the first layer"):
        ConvexCombination(torch.tensor(0.5), [Normalize(torch.zeros(1), torch.ones(1))])


def test_explain_shows_the_layers_of_a_branch() -> None:
    inner = ConvexCombination(torch.tensor(0.5), [Abs()])
    outer = ConvexCombination(torch.tensor(0.25), [*combination().sublayers(), inner])
    head = Dense(torch.tensor([[1.0], [-1.0]]), torch.zeros(2))
    bounds = FrozenNetwork([outer, Abs(), head], (1,)).proof(PROFILES["float32"]).bounds
    lines = bounds.explain(2.0).splitlines()
    names = [line[:28].rstrip() for line in lines[1:-1]]
    assert names == [
        "0 convex_combination", "0.0 dense", "0.1 dense", "0.2 convex_combination", "0.2.0 abs",
        "1 abs", "2 dense",
    ]  # fmt: skip
    costs = [float(line.split()[-1]) for line in lines[1:]]
    assert sum(costs[:-1]) == pytest.approx(costs[-1], rel=0.01)
    assert costs[-1] == pytest.approx(2 * float((bounds.alpha + 2 * bounds.beta).max()), rel=0.01)
    assert min(costs) == 0.0  # moves and comparisons are free
    first = gamma(2, 2.0**-24) * (2 * 2.0 + 3)  # times 4 and 0.75 inside, 2 for the pair, 2 (mu)
    assert costs[1] == pytest.approx(2 * 2 * 0.75 * 4 * first, rel=0.01)


CASES = [(name, None, False) for name in SHAPES] + [
    ("resnet9", None, True),
    ("resnet9", "lln", False),
    ("lip_convnet5", "lln", False),
]


@pytest.mark.parametrize("profile", SINGLE)
@pytest.mark.parametrize(("name", "head", "poisoned"), CASES)
def test_t4_pair_errors_of_peers_stay_below_their_bound(
    name: str, head: str | None, poisoned: bool, profile: str
) -> None:
    network = peer(name, head, poisoned)
    bounds = network.proof(PROFILES[profile]).bounds
    deployed = network.deployed(profile)
    ratios = []
    for scale in (1e-3, 1.0, 1e3):
        x = scale * inputs(network, 100)
        error = deployed(x).double() - network.in_float64()(x.double())
        differences = (error[:, :, None] - error[:, None, :]).abs()
        allowed = (
            bounds.alpha
            + bounds.beta * network.proof(PROFILES["float64"]).input_norms(x)[:, None, None]
        )
        ratios.append(float((differences / allowed).nan_to_num(0.0).max()))
    assert min(ratios) > USELESS
    assert max(ratios) < 1.0
    if poisoned:
        assert float(bounds.alpha.max()) > POISON * 2.0**-24


def outputs(network: FrozenNetwork, x: Tensor) -> list[Tensor]:
    """Activations behind all layers, those of branches included, in the order of evaluation."""
    found: list[Tensor] = []
    hooks = [
        layer.register_forward_hook(lambda _, __, output: found.append(output))
        for layer in network.modules()
        if isinstance(layer, FixedLayer)
    ]
    network(x)
    for hook in hooks:
        hook.remove()
    return found


def in_order(rows: tuple[LayerRounding, ...]) -> list[LayerRounding]:
    """Rows in the order in which their layers finish."""
    return [found for row in rows for found in (*in_order(row.inside), row)]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("poisoned", [False, True])
def test_norms_cover_the_activations_of_branches(profile: str, poisoned: bool) -> None:
    network = peer("resnet9", poisoned=poisoned)
    chosen = PROFILES[profile]
    rows = in_order(network.proof(chosen).bounds.layers)[:-1]
    x = inputs(network, 50)
    norms = network.proof(PROFILES["float64"]).input_norms(x)
    found = outputs(network.deployed(chosen.name), x.to(chosen.dtype))[:-1]
    assert len(found) == len(rows) > len(network.layers)
    for z, row in zip(found, rows, strict=True):
        allowed = row.output.constant + row.output.slope * norms
        assert bool((z.double().flatten(1).norm(dim=1) <= allowed).all()), row.kind


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", SHAPES)
def test_t5_no_sound_certificate_of_a_peer_breaks(name: str, profile: str) -> None:
    network = peer(name)
    x = near_boundary(network, inputs(network, 12), 0.1)
    found = rounding_attack(network, x, profile, candidates=250)
    assert found.issued["sound"] >= 10
    assert found.broken["sound"] == 0


def test_changes_inside_a_branch_reach_every_profile() -> None:
    network = peer("resnet9")
    x = inputs(network, 3)
    before = [certify(network, x, name).slack for name in PROFILES]
    layer = next(layer for layer in network.layers if isinstance(layer, ConvexCombination))
    layer.branch[0].bias.data.add_(1000.0)
    after = [certify(network, x, name).slack for name in PROFILES]
    assert all(bool((b > 2 * a).all()) for a, b in zip(before, after, strict=True))
    fresh = FrozenNetwork([*network.features(), network.head], network.in_shape)
    for name, slack in zip(PROFILES, after, strict=True):
        assert torch.equal(certify(fresh, x, name).slack, slack)


def test_autocast_does_not_reach_a_branch() -> None:
    network = peer("resnet9")
    x = inputs(network, 3)
    for name in PROFILES:
        expected = certify(network, x, name)
        with torch.autocast("cpu", torch.bfloat16):
            found = certify(network, x, name)
        assert torch.equal(found.radius, expected.radius)
        assert torch.equal(found.margin, expected.margin)
