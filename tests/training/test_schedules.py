"""Schedules against the values their authors state."""

import pytest

from unitmargin.training.options import TrainingOptions
from unitmargin.training.schedules import SCHEDULES

VALUES = {
    "constant": {0.0: 1.0, 0.5: 1.0, 1.0: 1.0},
    "linear": {0.0: 1.0, 0.25: 0.75, 1.0: 0.0},
    "halving": {0.0: 1.0, 0.33: 1.0, 1 / 3: 0.5, 0.66: 0.5, 2 / 3: 0.25, 1.0: 0.25},
    "one_cycle": {0.0: 0.0, 0.15: 0.5, 0.3: 1.0, 0.65: 0.5, 1.0: 0.0},
    "exponential": {0.0: 1.0, 0.6: 0.01, 1 / 200: 0.96235062639},
    "triangle": {0.0: 0.0, 0.2: 0.5, 0.4: 1.0, 0.6: 0.525, 0.8: 0.05, 0.9: 0.025, 1.0: 0.0},
    "tenths": {0.0: 1.0, 0.49: 1.0, 0.5: 0.1, 0.74: 0.1, 0.75: 0.01, 1.0: 0.01},
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_values(name: str) -> None:
    for progress, factor in VALUES[name].items():
        assert SCHEDULES[name](progress) == pytest.approx(factor, abs=1e-11)


def test_an_unknown_schedule_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="halving, one_cycle, linear, .*, got 'cosine'"):
        TrainingOptions(schedule="cosine")
