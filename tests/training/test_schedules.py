"""Schedules: which trainings of another length are the same so far."""

import pytest

from unitmargin.training.schedules import SCHEDULES, extendable, require_moving, same_so_far


def test_only_a_constant_rate_can_be_extended_after_the_end() -> None:
    assert [name for name in SCHEDULES if extendable(name)] == ["constant"]


def test_a_schedule_of_steps_is_the_same_up_to_its_first() -> None:
    """Halved after a third: of 9 steps after three, of 12 after four."""
    assert [same_so_far("halving", done, 9, 12) for done in range(6)] == [*4 * [True], False, False]


def test_a_line_is_never_the_same_after_its_first_step() -> None:
    assert [same_so_far("linear", done, 10, 20) for done in (0, 1, 2)] == [True, True, False]


def test_the_same_length_is_the_same() -> None:
    assert all(same_so_far(name, 7, 7, 7) for name in SCHEDULES)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_training_of_few_steps_moves_or_is_refused(name: str) -> None:
    if SCHEDULES[name](0.0) > 0:
        require_moving(name, 1)
        return
    with pytest.raises(
        ValueError, match="schedule must have a rate above 0 in one of 1 steps, got"
    ):
        require_moving(name, 1)
    require_moving(name, 2)
