"""Brackets of a threshold: both ends near it, few trials, no end on the wrong side."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from unitmargin.solvers.bracket import Bracket

HEIGHTS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda factor: 0.3 - factor,
    "bent": lambda factor: torch.where(factor < 0.3, 2.0 * (0.3 - factor), 0.01 * (0.3 - factor)),
    "cubed": lambda factor: (0.3 - factor) ** 3,
    "step": lambda factor: torch.where(factor < 0.3, 1.0, -1e-9).double(),
}


def narrowed(
    height: Callable[[Tensor], Tensor], rows: int, trials: int
) -> tuple[Bracket, list[int]]:
    """The bracket of [0, 1] after so many trials, and the rows that each evaluated."""
    low, high = torch.zeros(rows, dtype=torch.float64), torch.ones(rows, dtype=torch.float64)
    bracket = Bracket(low, high, height(low), height(high), torch.full_like(low, 1e-12))
    evaluated = []

    def trial(factor: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        evaluated.append(len(chosen))
        return height(factor), height(factor) < 0

    bracket.narrow(trial, trials, 1e-10)
    return bracket, evaluated


@pytest.mark.parametrize("name", HEIGHTS)
def test_both_ends_come_to_the_threshold_from_their_own_sides(name: str) -> None:
    bracket, evaluated = narrowed(HEIGHTS[name], 3, 150)
    assert (HEIGHTS[name](bracket.low) >= 0).all()
    assert (HEIGHTS[name](bracket.high) < 0).all()
    assert (bracket.high - bracket.low <= 1e-10).all()
    assert (bracket.high - 0.3).abs().max() <= 1e-10
    assert len(evaluated) < 150


def test_a_linear_height_takes_a_handful_of_trials() -> None:
    assert len(narrowed(HEIGHTS["linear"], 1, 100)[1]) <= 8


def test_narrow_brackets_are_evaluated_no_more() -> None:
    thresholds = torch.tensor([0.3, 0.4], dtype=torch.float64)
    low, high = torch.tensor([0.3, 0.0]).double(), torch.tensor([0.3, 1.0]).double()
    bracket = Bracket(low, high, thresholds - low, thresholds - high, torch.full_like(low, 1e-12))
    seen: list[int] = []

    def trial(factor: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        seen.extend(rows.tolist())
        return thresholds[rows] - factor, factor > thresholds[rows]

    bracket.narrow(trial, 100, 1e-10)
    assert set(seen) == {1}


def test_no_trials_leave_the_bracket_and_no_rows_need_none() -> None:
    bracket, evaluated = narrowed(HEIGHTS["linear"], 2, 0)
    assert (bracket.low.tolist(), bracket.high.tolist(), evaluated) == ([0, 0], [1, 1], [])
    assert narrowed(HEIGHTS["linear"], 0, 9)[1] == []
