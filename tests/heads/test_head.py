"""Heads of 1-Lipschitz networks: pair distances come out of their rows."""

import math

import pytest
import torch

from unitmargin.certificates.certify import certificate_from_logits
from unitmargin.frozen import FrozenNetwork
from unitmargin.heads import HEADS, UPD_HEADS
from unitmargin.layers.promises import UPD

EXACTNESS = 1e-12
"""Polished float64 rows."""

PROVED = 1e-11
"""Proved distances are rounded up by a few factors of 1 + 2^-40."""

ORTHONORMAL = ("bjorck", "cayley", "skew")


@pytest.mark.parametrize("name", ORTHONORMAL)
def test_pairs_of_orthonormal_rows_are_root_two_apart(name: str) -> None:
    head = HEADS[name](7, 4)
    frozen = FrozenNetwork([head.freeze()], (7,))
    constants = frozen.pair_constants()
    off = ~torch.eye(4, dtype=torch.bool)
    assert (constants[off] - math.sqrt(2.0)).abs().max() <= PROVED
    logits = torch.tensor([[3.0, 1.0, 0.0, 0.0]])
    radius = certificate_from_logits(logits, constants).radius
    assert float(radius[0]) == pytest.approx(math.sqrt(2.0), abs=PROVED)


def test_normalised_rows_are_certified_pair_by_pair() -> None:
    head = HEADS["lln"](5, 3)
    rows = head.freeze().weight
    assert (rows.norm(dim=1) - 1.0).abs().max() <= EXACTNESS
    constants = FrozenNetwork([head.freeze()], (5,)).pair_constants()
    assert (constants - torch.cdist(rows, rows)).abs().max() <= 1e-7  # cdist of equal rows
    assert 0.0 < constants.max() <= 2.0


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e-13, 1e20, 1e38])
def test_rows_of_every_magnitude_are_normalised(scale: float) -> None:
    head = HEADS["lln"](5, 3)
    with torch.no_grad():
        head.raw.copy_(torch.nn.functional.normalize(head.raw) * scale)
    assert (head.weight().norm(dim=1) - 1.0).abs().max() <= 1e-6
    assert (head.freeze().weight.norm(dim=1) - 1.0).abs().max() <= EXACTNESS


def test_a_row_of_zeros_stays_one_and_has_a_gradient() -> None:
    head = HEADS["lln"](5, 3)
    with torch.no_grad():
        head.raw[1] = 0.0
    weight = head.weight()
    assert weight[1].tolist() == [0.0] * 5
    weight.sum().backward()
    assert head.raw.grad is not None
    assert head.raw.grad[1].tolist() == [1.0] * 5


@pytest.mark.parametrize("name", ORTHONORMAL)
def test_orthonormal_rows_need_as_many_features(name: str) -> None:
    with pytest.raises(ValueError, match="at least 5 features for 5 classes, got 4"):
        HEADS[name](4, 5)


@pytest.mark.parametrize("name", HEADS)
def test_one_class_is_none(name: str) -> None:
    with pytest.raises(ValueError, match="n_classes must be at least 2, got 1"):
        HEADS[name](4, 1)


def test_only_upd_heads_promise_it() -> None:
    assert {name for name in HEADS if HEADS[name](6, 3).promise == UPD} == set(UPD_HEADS)
