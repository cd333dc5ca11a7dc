"""What layers make of zeros: bounds by hand, and a network that does not state it is refused."""

from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor

from unitmargin import certify
from unitmargin.frozen import Dense, FrozenNetwork, proof
from unitmargin.frozen.combination import ConvexCombination
from unitmargin.frozen.profiles import PROFILES
from unitmargin.frozen.zero import norms_at_zero
from unitmargin.layers.arithmetic import gamma
from unitmargin.layers.bounds import LayerConstants
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.normalize import Normalize

WIDE = PROFILES["float64"]

APPENDED = 1000
"""Constants that a layer appends, each of 1e6: their norm is 3.2e7."""


class Appending(FixedLayer):
    """Constants behind its input: it moves numbers, and its norm is 1."""

    kind = "appending"

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((x, x.new_full((len(x), APPENDED), 1e6)), 1)

    def rounding(self, unit: float) -> float:
        return 0.0


class Stated(Appending):
    kind = "stated"

    def constants(self) -> LayerConstants:
        return LayerConstants(1.0, bias=1e6 * APPENDED**0.5)


class Moved(FixedLayer):
    """A shift by one in every entry, whose output at zero is stated to be as much as given."""

    kind = "moved"

    def __init__(self, stated: float) -> None:
        super().__init__()
        self.stated = stated

    def forward(self, x: Tensor) -> Tensor:
        return x + 1.0

    def rounding(self, unit: float) -> float:
        return unit

    def constants(self) -> LayerConstants:
        return LayerConstants(1.0, bias=self.stated)


def head(features: int) -> Dense:
    generator = torch.Generator().manual_seed(0)
    rows = 0.1 * torch.randn(2, features, generator=generator, dtype=torch.float64)
    rows[1, 2:] = rows[0, 2:].flip(0)  # equal sums, so that rounding decides
    rows[:, :2] = torch.tensor([[0.1, 0.0], [-0.1, 0.0]])
    return Dense(rows, torch.zeros(2, dtype=torch.float64))


def test_a_layer_that_does_not_state_its_output_at_zero_is_refused() -> None:
    network = FrozenNetwork([Appending(), head(APPENDED + 2)], (2,))
    message = (
        r"constants\(\) of layer 0 \(Appending\) must bound .* by a bias, got bias 0 and an "
        r"output of norm 3.16228e\+07; return LayerConstants\(norm, bias=that norm\)"
    )
    with pytest.raises(ValueError, match=message):
        certify(network, torch.zeros(1, 2))


def test_no_label_is_certified_that_exact_arithmetic_contradicts() -> None:
    last = head(APPENDED + 2)
    network = FrozenNetwork([Stated(), last], (2,))
    x = torch.zeros(200, 2, dtype=torch.float64)
    x[:, 0] = torch.linspace(-2e-8, 2e-8, 200, dtype=torch.float64)
    found = certify(network, x)
    assert (found.label == 1).any()  # rounding shifts the boundary
    differences = [Fraction(a) - Fraction(b) for a, b in last.weight.T.tolist()]
    constant = Fraction(10**6) * sum(differences[2:])
    bounds, logits = network.proof(WIDE).bounds, network(x)
    for sample, point in enumerate(x.tolist()):
        exact = differences[0] * Fraction(point[0]) + constant
        computed = Fraction(float(logits[sample, 0])) - Fraction(float(logits[sample, 1]))
        assert abs(computed - exact) <= Fraction(float(bounds.alpha[0, 1]))
        wrong = (exact > 0) != (found.label[sample].item() == 0)
        assert not wrong or found.radius[sample] == 0.0


@pytest.mark.parametrize("stated", [1.0, 2.0])
def test_layers_of_a_branch_state_theirs(stated: float) -> None:
    """Four entries of one have the norm 2."""
    branch = [Dense(torch.eye(4), torch.ones(4)), Moved(stated)]
    combination = ConvexCombination(torch.tensor(0.5), branch)
    network = FrozenNetwork([combination, Dense(torch.eye(4), torch.zeros(4))], (4,))
    if stated == 2.0:
        assert float(certify(network, torch.tensor([[9.0, 0.0, 0.0, 0.0]])).radius) > 0.0
        return
    with pytest.raises(ValueError, match=r"layer 0.branch.1 \(Moved\) must .* got bias 1 and an"):
        certify(network, torch.zeros(1, 4))


def test_what_is_stated_at_zero_is_judged_there_and_not_behind_other_layers() -> None:
    """The output is zero at the activation of a zero input, and 2 at zeros."""
    back = Dense(torch.eye(4), -torch.ones(4))
    for stated, layers in ((0.0, [back, Moved(0.0)]), (2.0, [back, Moved(2.0)])):
        network = FrozenNetwork([*layers, Dense(torch.eye(4), torch.zeros(4))], (4,))
        if stated:
            certify(network, torch.zeros(1, 4))
            continue
        with pytest.raises(ValueError, match=r"layer 1 \(Moved\) must bound"):
            certify(network, torch.zeros(1, 4))


def test_norms_at_zero_by_hand() -> None:
    """Two layers of norm 2, whose biases cancel: what is left are their errors."""
    first = Dense(2.0 * torch.eye(3).double(), torch.tensor([2.0, 1.0, 2.0]).double())
    second = Dense(2.0 * torch.eye(3).double(), -2.0 * first.bias)
    layers = [Normalize(torch.ones(3).double(), torch.ones(3).double()), first, second]
    network = FrozenNetwork([*layers, head(3)], (3,)).in_float64()
    constants = [layer.constants() for layer in network.features()]
    found, unit = norms_at_zero(network, constants, WIDE), gamma(4)
    assert found[0] == 0.0
    assert 3.0 < found[1] <= 3.0 * (1.0 + 1e-14)
    assert found[2] == pytest.approx(2.0 * 3.0 * unit + (2.0 * 3.0 + 6.0) * unit, rel=1e-9, abs=0.0)


def test_bounds_that_another_thread_makes_meanwhile_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = Dense(2.0 * torch.eye(3), torch.tensor([2.0, 1.0, 2.0]))
    layers = [first, Dense(2.0 * torch.eye(3), -2.0 * first.bias), Dense(torch.eye(3), first.bias)]
    network, single, found = FrozenNetwork(layers, (3,)), PROFILES["float32"], []

    def interrupted(*arguments: Any) -> list[float]:
        if not found:
            found.append(None)
            found.append(network.proof(single).bounds)
        return norms_at_zero(*arguments)

    monkeypatch.setattr(proof, "norms_at_zero", interrupted)
    network.proof(WIDE)
    monkeypatch.undo()
    expected = FrozenNetwork(layers, (3,)).proof(single).bounds
    assert torch.equal(found[1].alpha, expected.alpha)
