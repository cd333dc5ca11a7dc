"""Schedules, each a factor on the learning rate by the share of the training that is done."""

import math
from collections.abc import Callable

import numpy as np

PEAK = 0.3
"""Share of a one-cycle training that warms up."""

DECADES = 10.0 / 3.0
"""Powers of ten that the exponential schedule falls by in a whole training: 0.01 in 120 of 200
epochs, as LargeConvNet was trained."""

EXAMPLE = 100
"""Steps by which a schedule is tried."""

SCHEDULES: dict[str, Callable[[float], float]] = {
    # The paper's: x 0.5 at 1/3 and at 2/3.
    "halving": lambda done: math.pow(0.5, math.floor(min(3.0 * done + 1e-9, 2.0))),
    # A linear warm-up over PEAK, then a cosine to zero.
    "one_cycle": lambda done: (
        done / PEAK if done < PEAK else 0.5 + 0.5 * math.cos(math.pi * (done - PEAK) / (1.0 - PEAK))
    ),
    # A straight line to zero.
    "linear": lambda done: 1.0 - done,
    "constant": lambda done: 1.0,
    # That of LargeConvNet: a straight line of the logarithm.
    "exponential": lambda done: math.pow(10.0, -DECADES * done),
    # That of ResNet9: from 0 to 1 at 2/5, down to 1/20 at 4/5, and to 0 at the end.
    "triangle": lambda done: float(np.interp(done, (0.0, 0.4, 0.8, 1.0), (0.0, 1.0, 0.05, 0.0))),
    # That of LipConvNet: x 0.1 at 1/2 and at 3/4.
    "tenths": lambda done: math.pow(0.1, (done >= 0.5) + (done >= 0.75)),
}


def extendable(schedule: str) -> bool:
    """Whether a training that has ended may go on: what comes later changes nothing before."""
    return same_so_far(schedule, EXAMPLE, EXAMPLE, EXAMPLE + 1)


def require_moving(schedule: str, steps: int) -> None:
    """Raise for a training in which no step has a rate above 0."""
    factor = SCHEDULES[schedule]
    if not any(factor(step / steps) for step in range(steps)):
        raise ValueError(
            f"schedule must have a rate above 0 in one of {steps} steps, got {schedule!r}, which "
            "begins at 0; train for more steps, or under another schedule"
        )


def same_so_far(schedule: str, done: int, first: int, second: int) -> bool:
    """Whether ``done`` steps of a training of ``first`` steps had the rates of one of ``second``.

    Example:
        >>> same_so_far("halving", 2, 9, 12), same_so_far("linear", 2, 9, 12)
        (True, False)
    """
    factor = SCHEDULES[schedule]
    return all(factor(step / first) == factor(step / second) for step in range(done))
