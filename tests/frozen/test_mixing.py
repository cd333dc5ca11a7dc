"""Deployed mixing layers: constants, rounding bounds by hand and in effect, files, refusals."""

import copy
import math
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from slicing import ARRANGED, mixing, orthogonal
from torch import Tensor

from unitmargin import certify, closest_adversarial
from unitmargin.certificates.rounding_attack import near_boundary, rounding_attack
from unitmargin.frozen import Dense, FrozenNetwork, ModelFileError, load, save
from unitmargin.frozen.mixing import MIXINGS, GroupMixing, PositionMixing, WindowMixing
from unitmargin.frozen.profiles import PROFILES
from unitmargin.layers.arithmetic import SMALLEST_NORMAL, Affine
from unitmargin.layers.bounds import LayerRounding
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.promises import GNP
from unitmargin.layers.rearrangement import Flatten
from unitmargin.layers.slices import Arrangement, Folds, Groups, Positions, Shifts, Windows

USELESS = 1e-6
"""A bound so far above every error seen would claim nothing of use."""

EXACTNESS = 1e-12
"""Singular values of float64 matrices of twenty rows."""

SINGLE = PROFILES["float32"]

HADAMARD = torch.tensor(
    [[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, 1.0]]
)
"""Twice an orthogonal matrix; that of its absolute values has norm 4."""

every = pytest.mark.parametrize(("arrangement", "channels"), ARRANGED.values(), ids=ARRANGED)


def row(layer: FixedLayer) -> LayerRounding:
    return layer.bound_rounding(layer.constants(), Affine(slope=1.0), SINGLE)


@every
def test_a_mixing_layer_is_gnp_with_exact_singular_values(
    arrangement: Arrangement, channels: int
) -> None:
    layer = mixing(arrangement, channels)
    assert layer.promise == GNP
    values = layer.singular_values()
    assert len(values) == math.prod(arrangement.stack(channels))
    assert (values - 1.0).abs().max() <= EXACTNESS
    layer.weight.mul_(3.0)
    assert layer.norm() == pytest.approx(3.0, abs=EXACTNESS)
    assert 3.0 <= layer.constants().norm <= 3.0 * (1.0 + 1e-6)


@pytest.mark.parametrize("parts", [1, 3])
def test_constants_are_the_largest_of_all_matrices(
    parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the size of the parts in which a stack is bounded."""
    monkeypatch.setattr("unitmargin.frozen.spectral.CHUNK_ENTRIES", 16 * parts)
    scales = torch.tensor([1.0, 4.0, 0.5, 2.0])
    weight = scales[:, None, None] * HADAMARD
    layer = PositionMixing(weight, torch.zeros(4, 4), 0, (2, 2))
    assert layer.constants().norm == pytest.approx(8.0, rel=1e-9)
    assert layer.constants().absolute == pytest.approx(16.0, rel=1e-9)


def test_bounds_of_a_mixing_layer_by_hand() -> None:
    """Equation (8): four terms and a bias an output; the bias is added to every window."""
    layer = WindowMixing(HADAMARD[None], torch.tensor([[3.0, 4.0, 0.0, 0.0]]), 1, (2, 4))
    found, unit = row(layer), Fraction(1, 2**24)
    g5 = 5 * unit / (1 - 5 * unit)
    bias = 5.0 * math.sqrt(2.0)  # two windows
    assert found.norm == pytest.approx(2.0, rel=1e-9)
    assert Fraction(found.error.slope) >= 4 * g5
    assert found.error.slope == pytest.approx(float(4 * g5), rel=1e-9)
    assert found.error.constant >= float(g5) * bias
    assert found.error.constant == pytest.approx(float(g5) * bias, rel=1e-9)
    assert found.output.slope == pytest.approx(2.0 + float(4 * g5), rel=1e-9)
    assert found.output.constant == pytest.approx((1.0 + float(g5)) * bias, rel=1e-9)
    assert found.largest.slope >= 4.0 + found.output.slope


def test_the_bias_is_that_of_all_slices() -> None:
    layer = GroupMixing(HADAMARD.expand(3, 4, 4), torch.full((3, 4), 2.0), 0, (2, 2), size=1)
    assert layer.constants().bias == pytest.approx(2.0 * math.sqrt(12.0), rel=1e-9)
    x = torch.zeros(1, 3, 2, 2)
    assert float(layer(x).norm()) == pytest.approx(layer.constants().bias, rel=1e-6)


def test_underflow_of_a_mixing_layer_is_paid_for() -> None:
    """Each of the eight outputs may lose four products, four sums and more."""
    layer = WindowMixing(HADAMARD[None], torch.zeros(1, 4), 0, (2, 4))
    lost = 8 * SMALLEST_NORMAL[torch.float32] * math.sqrt(8.0)
    assert lost <= row(layer).error.constant <= 1e3 * lost


@every
def test_errors_stay_below_their_bounds(arrangement: Arrangement, channels: int) -> None:
    layer = mixing(arrangement, channels).float()
    layer.bias.mul_(30.0)
    found, wide = row(layer), copy.deepcopy(layer).double()
    ratios = []
    for scale in (1e-3, 1.0, 1e3):
        x = scale * torch.randn(60, channels, *arrangement.map_size)
        computed, norms = layer(x), x.double().flatten(1).norm(dim=1)
        error = (computed.double() - wide(x.double())).flatten(1).norm(dim=1)
        allowed = found.error.constant + found.error.slope * norms
        ratios.append(float((error / allowed).max()))
        reached = found.output.constant + found.output.slope * norms
        assert bool((computed.double().flatten(1).norm(dim=1) <= reached).all())
    assert max(ratios) < 1.0
    assert layer.weight.shape[1] == 1 or max(ratios) > USELESS


def network(classes: int = 4) -> FrozenNetwork:
    """Every arrangement in a row, with biases, in float32."""
    torch.manual_seed(5)
    layers = [
        mixing(Folds((8, 8), 2, 1), 2), mixing(Windows((4, 4), 2, 1), 8), mixing(Shifts((4, 4)), 8),
        mixing(Positions((4, 4)), 8), mixing(Groups((4, 4), 2), 8), Flatten(),
    ]  # fmt: skip
    rows = orthogonal(1, 128)[0, :classes] / 2.0**0.5
    head = Dense(rows, torch.zeros(classes, dtype=torch.float64))
    return FrozenNetwork([*layers, head], (2, 8, 8)).to(torch.float32)


def inputs(count: int) -> Tensor:
    return torch.rand(count, 2, 8, 8, generator=torch.Generator().manual_seed(6))


@pytest.mark.parametrize("name", PROFILES)
def test_naive_certificates_break_and_sound_ones_do_not(name: str) -> None:
    frozen = network()
    x = near_boundary(frozen, inputs(25), 0.05)
    found = rounding_attack(frozen, x, name, candidates=500)
    assert found.issued["sound"] == 25
    assert found.broken["sound"] == 0
    assert found.has_power


def test_the_closed_form_is_reached() -> None:
    """The margin is the distance: the closest point lies on the boundary, as far as it says."""
    frozen, x = network(), inputs(20)
    found, closest = certify(frozen, x), closest_adversarial(frozen, x)
    distance = (closest.point - x).double().flatten(1).norm(dim=1)
    assert torch.allclose(distance, found.margin, rtol=1e-4)
    assert bool((found.radius > 0).all())
    flipped = closest.flipped_distance[closest.flipped]
    assert len(flipped) >= 10
    assert bool((flipped >= found.radius[closest.flipped]).all())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_saved_network_comes_back(dtype: torch.dtype, tmp_path: Path) -> None:
    frozen = network().to(dtype)
    save(frozen, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert torch.equal(frozen(inputs(3)), again(inputs(3)))
    for mine, other in zip(frozen.layers, again.layers, strict=True):
        assert (type(mine), mine.configuration()) == (type(other), other.configuration())


def test_a_flipped_bit_of_any_weight_is_found(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save(network(), path)
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    for step, position in enumerate(range(begin, len(content), (len(content) - begin) // 40)):
        flipped = bytearray(content)
        flipped[position] ^= 1 << step % 8
        path.write_bytes(flipped)
        with pytest.raises(ModelFileError, match="SHA-256 is not that of its content"):
            load(path)


def test_changed_weights_are_proved_again() -> None:
    frozen, x = network(), inputs(2)
    before = certify(frozen, x).slack
    layer = frozen.layers[1]
    assert isinstance(layer, WindowMixing)
    layer.bias.data.add_(1000.0)
    assert bool((certify(frozen, x).slack > 2.0 * before).all())


def test_copies_share_nothing() -> None:
    layer = mixing(Windows((4, 4), 2, 1), 2)
    other, x = copy.deepcopy(layer), torch.randn(2, 2, 4, 4, dtype=torch.float64)
    other.weight.zero_()
    assert layer.state_dict().keys() == {"weight", "bias"}
    assert bool((layer.weight != 0).any())
    fresh = mixing(Windows((4, 4), 2, 1), 2)
    fresh.load_state_dict(layer.state_dict())
    assert torch.equal(fresh(x), layer(x))


def test_autocast_does_not_reach_a_deployed_layer() -> None:
    layer, x = mixing(Positions((2, 2)), 4), torch.randn(2, 4, 2, 2, dtype=torch.float64)
    expected = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(x), expected)


def test_the_layout_of_a_weight_changes_no_bit() -> None:
    layer = mixing(Groups((2, 2), 2), 4).float()
    turned = layer.weight.mT.contiguous().mT
    assert not turned.is_contiguous()
    other = GroupMixing(turned, layer.bias, layer.absolute, **layer.arrangement.configuration())
    x = torch.randn(5, 4, 2, 2)
    assert torch.equal(other(x), layer(x))


@pytest.mark.parametrize(
    ("kind", "weight", "bias", "absolute", "cut", "message"),
    [
        (WindowMixing, (1, 0, 0), (1, 0), 0, {}, r"needs weight \(stack, n, n\) and bias"),
        (WindowMixing, (1, 4, 4), (1, 4), 5, {}, "absolute must be at most the 4 entries"),
        (WindowMixing, (1, 4, 4), (1, 4), -1, {}, "absolute must be >= 0"),
        (WindowMixing, (2, 4, 4), (2, 4), 0, {}, r"got shape \(2, 4, 4\) for Windows"),
        (WindowMixing, (1, 3, 3), (1, 3), 0, {}, r"got shape \(1, 3, 3\) for Windows"),
        (WindowMixing, (1, 5, 5), (1, 5), 0, {}, r"got shape \(1, 5, 5\) for Windows"),
        (PositionMixing, (2, 3, 3), (2, 3), 0, {}, r"got shape \(2, 3, 3\) for Positions"),
        (GroupMixing, (2, 4, 4), (2, 4), 0, {"size": 3}, r"got shape \(2, 4, 4\) for Groups"),
    ],
)  # fmt: skip
def test_parts_that_do_not_belong_together_are_refused(
    kind: type, weight: tuple[int, ...], bias: tuple[int, ...], absolute: int,
    cut: dict[str, int], message: str,
) -> None:  # fmt: skip
    with pytest.raises(ValueError, match=message):
        kind(torch.zeros(weight), torch.zeros(bias), absolute, (2, 2), **cut)


def test_every_arrangement_is_deployed() -> None:
    assert {one for one, _ in ((type(a), c) for a, c in ARRANGED.values())} == set(MIXINGS)
    assert all(layer.arranged is one for one, layer in MIXINGS.items())
