"""Losses against hand formulas."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.layers.margin import margins
from unitmargin.training.losses import bound_loss, multi_margin, offset_cross_entropy
from unitmargin.training.options import TrainingOptions

ROUNDING = 1e-12
"""A few dozen float64 operations."""


@given(st.integers(2, 7), st.floats(0.0, 2.0), st.integers(0, 99))
def test_multi_margin(classes: int, margin: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(4, classes, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (4,), generator=generator)
    total = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        gaps = [margin - (row[label] - value) for k, value in enumerate(row) if k != label]
        total += sum(max(0.0, gap) for gap in gaps) / classes / 4
    assert float(multi_margin(logits, labels, margin)) == pytest.approx(total, abs=ROUNDING)


@given(st.integers(2, 7), st.floats(0.0, 2.0), st.floats(0.05, 2.0), st.integers(0, 99))
def test_offset_cross_entropy(classes: int, offset: float, temperature: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(4, classes, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (4,), generator=generator)
    total = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        shifted = [(v - (offset if k == label else 0.0)) / temperature for k, v in enumerate(row)]
        top = max(shifted)
        total += top + math.log(sum(math.exp(v - top) for v in shifted)) - shifted[label]
    value = float(offset_cross_entropy(logits, labels, offset, temperature))
    assert value == pytest.approx(total / 4, rel=1e-12, abs=ROUNDING)


def test_margins_are_negative_where_the_prediction_is_wrong() -> None:
    logits = torch.tensor([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0], [0.0, 0.0, -1.0]])
    assert margins(logits, torch.tensor([0, 2, 0])).tolist() == [1.0, -1.0, 0.0]


def test_build_by_name() -> None:
    logits, labels = torch.randn(5, 3), torch.tensor([0, 1, 2, 1, 0])
    options = TrainingOptions(margin=0.7, offset=0.2, temperature=0.3)
    built = bound_loss("multi_margin", options)(logits, labels)
    assert torch.equal(built, multi_margin(logits, labels, 0.7))
    built = bound_loss("offset_cross_entropy", options)(logits, labels)
    assert torch.equal(built, offset_cross_entropy(logits, labels, 0.2, 0.3))
