"""Deployed reflections: their bounds by hand and against exact arithmetic, their files, their
certificates."""

import copy
import itertools
from pathlib import Path

import pytest
import torch
from jacobians import gnp_error
from reflecting import orthonormal, reflection
from slicing import ARRANGED
from torch import Tensor
from truth import Truth

from unitmargin import certify
from unitmargin.certificates.closest import closest_adversarial
from unitmargin.certificates.rounding_attack import near_boundary, rounding_attack
from unitmargin.frozen import Dense, FrozenNetwork, load, save
from unitmargin.frozen.profiles import PROFILES
from unitmargin.frozen.reflection import (
    REFLECTIONS,
    GroupReflection,
    PositionReflection,
    Reflection,
    WindowReflection,
)
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

ROWS = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0]])
"""Twice two orthonormal rows; their absolute values have the norm root of 8."""

every = pytest.mark.parametrize(("arrangement", "channels"), ARRANGED.values(), ids=ARRANGED)


def row(layer: FixedLayer) -> LayerRounding:
    return layer.bound_rounding(layer.constants(), Affine(slope=1.0), SINGLE)


@every
def test_a_reflection_is_gnp_with_exact_singular_values(
    arrangement: Arrangement, channels: int
) -> None:
    layer = reflection(arrangement, channels)
    assert layer.promise == GNP
    assert (layer.singular_values() - 1.0).abs().max() <= EXACTNESS
    layer.weight.mul_(2.0)
    assert layer.norm() == pytest.approx(7.0, abs=EXACTNESS)
    assert 7.0 <= layer.constants().norm <= 7.0 * (1.0 + 1e-6)
    layer.weight.mul_(0.25)
    assert tuple(layer.gains()) == pytest.approx((0.5, 1.0), abs=EXACTNESS)
    assert layer.constants().norm == pytest.approx(1.0, rel=1e-11)
    assert layer.constants().norm >= 1.0


def pieces(weight: Tensor) -> Tensor:
    """The Jacobians of one slice for every choice of the rows that reflect."""
    found = []
    for chosen in itertools.product((0.0, 1.0), repeat=len(weight)):
        taken = torch.tensor(chosen, dtype=weight.dtype)[:, None] * weight
        found.append(torch.eye(weight.shape[1]).to(weight) - 2 * weight.mT @ taken)
    return torch.stack(found)


@pytest.mark.parametrize("scale", [0.3, 0.7, 1.0, 1.2, 3.0])
def test_no_piece_of_any_weight_exceeds_its_bounds(scale: float) -> None:
    weight = scale * torch.linspace(0.8, 1.2, 3)[:, None].double() * orthonormal(1, 3, 5)[0]
    weight += 0.05 * scale * torch.randn(3, 5, dtype=torch.float64)
    layer = PositionReflection(weight[None], torch.zeros(1, 3).double(), (1, 1))
    values = torch.linalg.svdvals(pieces(weight))
    bound = layer.constants().norm
    assert float(values.max()) <= bound
    assert float(values.max()) == pytest.approx(bound, rel=1e-9)
    assert layer.gains().largest == pytest.approx(bound, rel=1e-9)
    assert layer.gains().smallest <= float(values.min()) + EXACTNESS


def test_two_rows_that_reflect_only_together_are_found() -> None:
    """Both reflect as one unit vector would, and each alone projects."""
    weight = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]]).double() / 2.0**0.5
    layer = PositionReflection(weight, torch.tensor([[0.0, 1.0]]).double(), (1, 1))
    assert layer.gains().smallest == 0.0
    assert layer.promise.measure(layer.singular_values()) == 1.0
    assert gnp_error(layer, torch.tensor([1.0, 0.0]).double().view(2, 1, 1)) <= EXACTNESS
    assert gnp_error(layer, torch.tensor([-1.0, 0.0]).double().view(2, 1, 1)) >= 0.9


def test_constants_are_the_largest_of_all_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of the parts in which a stack is bounded."""
    scales = torch.tensor([1.0, 4.0, 0.5, 2.0])
    for parts in (1, 3):
        monkeypatch.setattr("unitmargin.frozen.spectral.CHUNK_ENTRIES", 8 * parts)
        layer = PositionReflection(scales[:, None, None] * ROWS, torch.zeros(4, 2), (2, 2))
        (inner,) = layer.constants().branch
        assert inner.norm == pytest.approx(8.0, rel=1e-9)
        assert inner.absolute == pytest.approx(4.0 * 8.0**0.5, rel=1e-9)
        assert layer.constants().norm == pytest.approx(127.0, rel=1e-9)


def g(roundings: int) -> float:
    return roundings * 2.0**-24 / (1 - roundings * 2.0**-24)


def test_bounds_of_a_reflection_by_hand() -> None:
    """Equations (22) and (23): two windows, each with two rows of four entries, S = 2."""
    layer = WindowReflection(ROWS[None], torch.tensor([[3.0, 4.0]]), (2, 4))
    found, modulus, bias = row(layer), 8.0**0.5, 5.0 * 2.0**0.5
    first = (g(5) * modulus, g(5) * bias)  # slope and constant
    hidden = (2.0 + first[0], bias + first[1])
    slope = 4.0 * first[0] + g(3) * (1.0 + 2.0 * modulus * hidden[0])
    constant = 4.0 * first[1] + g(3) * 2.0 * modulus * hidden[1]
    assert found.norm == pytest.approx(7.0, rel=1e-9)
    for value, expected in (
        (found.error.slope, slope),
        (found.error.constant, constant),
        (found.output.slope, 7.0 + slope),
        (found.output.constant, 4.0 * bias + constant),
    ):
        assert value == pytest.approx(expected, rel=1e-9)
        assert value >= expected * (1.0 - 1e-15)
    inside = (modulus + 2.0 * hidden[0] + 1.0 + 2.0 * modulus * hidden[0], bias * 3.0)
    assert found.largest.slope >= inside[0]
    assert found.largest.slope <= inside[0] + 1.0 + found.output.slope + 1e-5
    assert found.largest.constant >= inside[1]


def test_numbers_that_double_on_the_way_are_met() -> None:
    """Of rows of 2^-30 and a bias the doubled positive part is what is large."""
    layer = PositionReflection(2.0**-30 * ROWS[None], torch.full((1, 2), 2.0**60), (1, 1))
    assert row(layer).largest.constant >= 2.0**61


def test_the_output_at_zero_is_within_its_bound() -> None:
    layer = GroupReflection(ROWS[:, None] / 2.0, torch.full((2, 1), 2.0), (2, 2), size=1)
    x = torch.zeros(1, 2, 2, 2)
    assert float(layer(x).norm()) == pytest.approx(layer.constants().bias, rel=1e-6)


def test_underflow_of_a_reflection_is_paid_for() -> None:
    """(19) of four rows with four products, which the way back multiplies by 4, and of eight
    outputs with two doubled products."""
    layer = WindowReflection(ROWS[None], torch.zeros(1, 2), (2, 4))
    tiny = SMALLEST_NORMAL[torch.float32]
    first = 4.0 * (4.0 + 4.0) * tiny * 2.0
    second = 4.0 * (4.0 + 4.0) * tiny * 8.0**0.5
    assert row(layer).error.constant == pytest.approx(4.0 * first + second, rel=1e-5, abs=0.0)


@every
def test_errors_stay_below_their_bounds(arrangement: Arrangement, channels: int) -> None:
    """Against the exact function, at ordinary magnitudes and behind large biases."""
    layer = reflection(arrangement, channels).float()
    layer.bias.mul_(30.0)
    found, truth = row(layer), Truth(torch.float32)
    ratios = []
    for scale in (1e-3, 1.0, 1e3):
        x = scale * torch.randn(4, channels, *arrangement.map_size)
        for one, computed in zip(x, layer(x), strict=True):
            norm = float(truth.norm(truth.fixed(one)))
            error = truth.fixed(computed) - truth.apply(layer, truth.fixed(one))
            ratios.append(float(truth.norm(error)) / found.error.at(norm))
            assert truth.is_below(truth.fixed(computed), found.output.at(norm))
    assert max(ratios) < 1.0
    assert layer.weight.shape[2] == 1 or max(ratios) > USELESS


def network(classes: int = 4) -> FrozenNetwork:
    """Every arrangement in a row, with biases, in float32."""
    torch.manual_seed(5)
    layers = [
        reflection(Folds((8, 8), 2, 1), 2), reflection(Windows((4, 4), 2, 1), 8),
        reflection(Shifts((4, 4)), 8), reflection(Positions((4, 4)), 8),
        reflection(Groups((4, 4), 2), 8), Flatten(),
    ]  # fmt: skip
    rows = orthonormal(1, classes, 128)[0] / 2.0**0.5
    head = Dense(rows, torch.zeros(classes, dtype=torch.float64))
    return FrozenNetwork([*layers, head], (2, 8, 8)).to(torch.float32)


def inputs(count: int) -> Tensor:
    return torch.rand(count, 2, 8, 8, generator=torch.Generator().manual_seed(6))


@pytest.mark.parametrize("name", PROFILES)
def test_sound_certificates_do_not_break(name: str) -> None:
    frozen = network()
    x = near_boundary(frozen, inputs(15), 0.05)
    found = rounding_attack(frozen, x, name, candidates=250)
    assert found.issued["sound"] == 15
    assert found.broken["sound"] == 0


def test_the_closed_form_is_reached() -> None:
    """The margin is the distance: the closest point lies on the boundary, as far as it says."""
    frozen, x = network(), inputs(20)
    found, closest = certify(frozen, x), closest_adversarial(frozen, x)
    distance = (closest.point - x).double().flatten(1).norm(dim=1)
    assert torch.allclose(distance, found.margin, rtol=1e-4)
    assert bool((found.radius > 0).all())
    flipped = closest.flipped_distance[closest.flipped]
    assert len(flipped) >= 5
    assert bool((flipped >= found.radius[closest.flipped]).all())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_saved_network_comes_back(dtype: torch.dtype, tmp_path: Path) -> None:
    frozen = network().to(dtype)
    save(frozen, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert torch.equal(frozen(inputs(3)), again(inputs(3)))
    for mine, other in zip(frozen.layers, again.layers, strict=True):
        assert (type(mine), mine.configuration()) == (type(other), other.configuration())


def test_changed_weights_are_proved_again() -> None:
    frozen, x = network(), inputs(2)
    before = certify(frozen, x).slack
    layer = frozen.layers[1]
    assert isinstance(layer, WindowReflection)
    layer.bias.data.add_(1000.0)
    assert bool((certify(frozen, x).slack > 2.0 * before).all())


def test_a_deployed_network_is_exported_with_a_dynamic_batch() -> None:
    deployed, x = network().deployed("float32"), inputs(7)
    shapes = ({0: torch.export.Dim("batch", min=1, max=64)},)
    exported = torch.export.export(deployed, (inputs(2),), dynamic_shapes=shapes)
    assert torch.equal(exported.module()(x), deployed(x))


def test_copies_share_nothing_and_autocast_does_not_reach_them() -> None:
    layer = reflection(Windows((4, 4), 2), 2)
    other, x = copy.deepcopy(layer), torch.randn(2, 2, 4, 4, dtype=torch.float64)
    expected = layer(x)
    other.weight.zero_()
    assert torch.equal(other(x), x)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(x), expected)


@pytest.mark.parametrize(
    ("kind", "weight", "bias", "cut", "message"),
    [
        (WindowReflection, (1, 0, 4), (1, 0), {}, r"needs weight \(stack, k, n\) with k <= n"),
        (WindowReflection, (1, 5, 4), (1, 5), {}, r"needs weight \(stack, k, n\) with k <= n"),
        (WindowReflection, (0, 2, 4), (0, 2), {}, r"got shape \(0, 2, 4\) for Windows"),
        (WindowReflection, (2, 2, 4), (2, 2), {}, r"got shape \(2, 2, 4\) for Windows"),
        (WindowReflection, (1, 2, 3), (1, 2), {}, r"got shape \(1, 2, 3\) for Windows"),
        (WindowReflection, (1, 2, 5), (1, 2), {}, r"got shape \(1, 2, 5\) for Windows"),
        (PositionReflection, (2, 2, 3), (2, 2), {}, r"got shape \(2, 2, 3\) for Positions"),
        (GroupReflection, (2, 2, 4), (2, 2), {"size": 3}, r"got shape \(2, 2, 4\) for Groups"),
    ],
)  # fmt: skip
def test_parts_that_do_not_belong_together_are_refused(
    kind: type[Reflection], weight: tuple[int, ...], bias: tuple[int, ...],
    cut: dict[str, int], message: str,
) -> None:  # fmt: skip
    with pytest.raises(ValueError, match=message):
        kind(torch.zeros(weight), torch.zeros(bias), (2, 2), **cut)


def test_every_arrangement_is_deployed() -> None:
    assert {type(arrangement) for arrangement, _ in ARRANGED.values()} == set(REFLECTIONS)
    assert all(layer.arranged is one for one, layer in REFLECTIONS.items())
