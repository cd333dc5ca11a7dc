"""The Björck iteration: its step, its reach, and what happens beyond it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.orthogonal.bjorck import bjorck, largest_singular_value

FLOAT32_PROMISE = 2e-6
"""The promise of the docstring for condition numbers up to 30."""


def with_singular_values(values: torch.Tensor, columns: int) -> torch.Tensor:
    raw = torch.randn(len(values), columns, dtype=torch.float64)
    left, _, right = torch.linalg.svd(raw, full_matrices=False)
    return (left * values) @ right


def test_a_step_maps_each_singular_value() -> None:
    values = torch.tensor([1.0, 0.7, 0.4], dtype=torch.float64)
    raw = with_singular_values(values, 5)
    start = values / largest_singular_value(raw)
    moved = torch.linalg.svdvals(bjorck(raw, steps=1))
    expected = (start * (3 - start**2) / 2).sort(descending=True).values
    assert (moved - expected).abs().max() <= 1e-12


@given(st.integers(2, 40), st.integers(0, 20), st.floats(1.0, 30.0), st.integers(0, 99))
def test_rows_are_orthonormal_up_to_condition_30(
    rows: int, extra: int, condition: float, seed: int
) -> None:
    torch.manual_seed(seed)
    values = torch.linspace(condition, 1.0, rows, dtype=torch.float64)
    weight = bjorck(with_singular_values(values, rows + extra).float())
    assert (weight @ weight.mT - torch.eye(rows)).abs().max() <= FLOAT32_PROMISE


def test_the_scale_of_the_raw_matrix_does_not_matter() -> None:
    raw = with_singular_values(torch.linspace(2.0, 1.0, 6, dtype=torch.float64), 8)
    assert (bjorck(1e3 * raw) - bjorck(1e-3 * raw)).abs().max() <= 1e-12


def test_an_unfinished_iteration_stays_a_contraction() -> None:
    """From a square Gaussian start it is not orthogonal, but no singular value exceeds 1."""
    values = torch.linalg.svdvals(bjorck(torch.randn(200, 200, dtype=torch.float64)))
    assert values[-1] < 0.5
    assert values[0] <= 1 + 1e-12


@given(st.integers(1, 30), st.integers(0, 10), st.integers(0, 99))
def test_the_bound_is_above_and_near(rows: int, extra: int, seed: int) -> None:
    torch.manual_seed(seed)
    raw = torch.randn(rows, rows + extra, dtype=torch.float64)
    ratio = float(largest_singular_value(raw) / torch.linalg.matrix_norm(raw, 2))
    assert 1 - 1e-12 <= ratio <= rows ** (1 / 32) + 1e-12


def test_gradients() -> None:
    """The divisor is constant for autograd; it cancels once the iteration has converged."""
    raw = with_singular_values(torch.tensor([1.2, 1.0, 0.9], dtype=torch.float64), 4)
    assert torch.autograd.gradcheck(bjorck, raw.requires_grad_(True))


@pytest.mark.parametrize("ratio", [2.0, 2.5, 10.0])
def test_rows_whose_sums_hide_the_largest_direction(ratio: float) -> None:
    """The largest singular vectors are at right angles to all-ones vectors, on both sides."""
    left = torch.tensor([[1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64) / 2**0.5
    right = (
        torch.tensor([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], dtype=torch.float64) / 2**0.5
    )
    raw = ((left * torch.tensor([ratio, 1.0], dtype=torch.float64)) @ right).float()
    weight = bjorck(raw)
    assert (weight @ weight.mT - torch.eye(2)).abs().max() <= FLOAT32_PROMISE


def test_wide_matrices_take_the_same_steps_on_their_gram_matrix() -> None:
    raw = torch.randn(2, 4, 9, dtype=torch.float64)
    for steps in (1, 2, 5, 15):
        expected = raw / largest_singular_value(raw)[:, None, None]
        for _ in range(steps):
            expected = 1.5 * expected - 0.5 * expected @ expected.mT @ expected
        assert (bjorck(raw, steps) - expected).abs().max() <= 1e-13


@pytest.mark.parametrize("scale", [1e-36, 1e-20, 3e-12, 1e10, 1e30])
def test_the_weight_is_that_of_every_multiple(scale: float) -> None:
    raw = torch.nn.init.orthogonal_(torch.empty(2, 4, 9)) * torch.tensor([0.6, 1.1])[:, None, None]
    torch.testing.assert_close(bjorck(scale * raw), bjorck(raw), atol=2e-6, rtol=0)
