"""T14: laws of the sound radius."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from unitmargin import DenseUGNN, certify, freeze
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.frozen.profiles import PROFILES

VECTOR = freeze(DenseUGNN((200,), 4, hidden=(100, 60)))


@given(st.integers(0, 10_000))
def test_the_radius_is_below_the_margin_over_the_constant(seed: int) -> None:
    network = VECTOR
    x = torch.randn(50, 200, generator=torch.Generator().manual_seed(seed))
    for name in PROFILES:
        found = certify(network, x, name)
        pair = network.pair_constants()[found.label, found.runner_up]
        assert bool((found.radius <= (found.margin - found.slack).clamp_min(0) / pair).all())


def test_radii_fall_with_the_unit_roundoff() -> None:
    x = torch.randn(50, 200)
    double, single = (certify(VECTOR, x, name) for name in ("float64", "float32"))
    assert bool((double.radius > single.radius).all())
    assert bool((double.slack < single.slack).all())


@pytest.mark.parametrize("exponent", [-20, -3, 5, 40])
def test_scaling_the_logits_by_a_power_of_two_changes_no_radius(exponent: int) -> None:
    network = VECTOR
    head = Dense(2.0**exponent * network.head.weight, 2.0**exponent * network.head.bias)
    scaled = FrozenNetwork([*network.features(), head], network.in_shape)
    x = torch.randn(20, 200)
    for name in PROFILES:
        one, other = certify(network, x, name), certify(scaled, x, name)
        assert (one.radius - other.radius).abs().max() <= 1e-12
        assert (2.0**exponent * one.slack / other.slack - 1).abs().max() <= 1e-9


def slack(network: FrozenNetwork, x: Tensor, name: str = "float32") -> float:
    return float(certify(network, x, name).slack[0])


def affine(weight: Tensor, bias: Tensor, hidden_bias: float = 0.0) -> FrozenNetwork:
    features = weight.shape[1]
    hidden = Dense(torch.eye(features), torch.full((features,), hidden_bias))
    return FrozenNetwork([hidden, Dense(weight, bias)], (features,))


@given(st.integers(0, 10_000))
def test_slack_grows_with_norm_bias_and_width(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    weight, x = torch.randn(2, 10, generator=generator), torch.randn(1, 10, generator=generator)
    plain = affine(weight, torch.zeros(2))
    assert slack(plain, 2.0 * x) > 1.9 * slack(plain, x)
    assert slack(affine(weight, torch.ones(2)), x) > slack(plain, x)
    assert slack(affine(weight, torch.zeros(2), 3.0), x) > slack(plain, x)
    wide = affine(torch.cat((weight, torch.zeros(2, 90)), 1), torch.zeros(2))
    assert slack(wide, torch.cat((x, torch.zeros(1, 90)), 1)) > 5 * slack(plain, x)
