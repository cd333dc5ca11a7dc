"""Gradient norms of all pairs are 1 for every head."""

import pytest
import torch

from unitmargin.heads import UPD_HEADS
from unitmargin.paper import unitary_gradient


@pytest.mark.parametrize("head", UPD_HEADS)
def test_norms_are_one(head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unitary_gradient, "SAMPLES", 8)
    norms = unitary_gradient.gradient_norms(head, torch.float64)
    assert norms.shape == (8, 10)
    # A frame on the manifold is as exact as the float32 numbers it was drawn in.
    assert float((norms - 1.0).abs().max()) <= (1e-6 if head == "manifold" else 1e-8)


def test_the_figure_has_one_panel_a_pair() -> None:
    norms = {"bounded": 1.0 + 1e-7 * torch.randn(16, 10, dtype=torch.float64)}
    figure = unitary_gradient.norm_figure(norms)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == [f"f{i} - f{j}" for i in range(5) for j in range(i + 1, 5)]
