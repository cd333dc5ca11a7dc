"""Layers whose parameters are their orthogonal weights."""

from typing import Any

import pytest
import torch
from jacobians import gnp_error

from unitmargin.orthogonal.cayley import CayleyConv2d
from unitmargin.orthogonal.manifold import ManifoldConv2d, ManifoldLinear, manifold_conv

FLOAT32_PROMISE = 5e-6
"""That of the Cayley transform, from which the layers start."""


def test_the_parameter_is_the_weight() -> None:
    layer = ManifoldLinear(6, 4)
    assert layer.weight() is layer.raw


def test_the_spectrum_is_the_parameters() -> None:
    layer = ManifoldConv2d(3, 2, (3, 5))
    assert layer.spectrum().real is layer.real
    assert layer.spectrum().pairs is layer.pairs
    assert gnp_error(layer, torch.randn(3, 3, 5)) <= FLOAT32_PROMISE


@pytest.mark.parametrize(
    ("layer", "free"),
    [
        (lambda: ManifoldLinear(6, 4), {"bias"}),
        (lambda: ManifoldConv2d(3, 2, (3, 5)), {"bias"}),
        (lambda: ManifoldConv2d(3, 2, (2, 2)), {"bias", "pairs"}),
    ],
)
def test_all_weights_are_declared_as_on_the_manifold(layer: Any, free: set[str]) -> None:
    module = layer()
    declared = [p for kind in module.manifold_parameters() for p in kind]
    others = {n: p for n, p in module.named_parameters() if all(p is not q for q in declared)}
    assert set(others) == free
    if "pairs" in free:  # a 2 x 2 map has no pairs, and nothing to train in them
        assert others["pairs"].numel() == 0
        assert not others["pairs"].requires_grad


def test_the_kernel_decides_which_convolution() -> None:
    assert isinstance(manifold_conv(4, 4, 3, (2, 2)), ManifoldConv2d)
    assert isinstance(manifold_conv(4, 4, 3, (3, 3)), ManifoldConv2d)
    assert isinstance(manifold_conv(4, 4, 3, (2, 4)), CayleyConv2d)
