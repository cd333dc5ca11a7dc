"""How fast the steps of an epoch are, and how long they wait for data."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from unitmargin.training.share import Share


class Pace(NamedTuple):
    """Samples a second, and the share of the time in which steps waited for data."""

    rate: float
    waiting: float

    def __str__(self) -> str:
        return f"{self.rate:.0f} samples/s, {self.waiting:.0%} waiting for data"


class Watch:
    """Measures the steps of an epoch as their batches are handed out."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.waited = 0.0
        self.samples = 0

    def timed(self, shares: Iterator[Share]) -> Iterator[Share]:
        """The same shares; the time until each is there is time that its step waits."""
        while True:
            asked = time.perf_counter()
            share = next(shares, None)
            self.waited += time.perf_counter() - asked
            if share is None:
                return
            self.samples += share.batch
            yield share

    def pace(self) -> Pace:
        """Of the steps so far."""
        seconds = max(time.perf_counter() - self.started, 1e-9)  # a clock may stand still
        return Pace(self.samples / seconds, self.waited / seconds)

    def show(self, bar: Any) -> None:
        """Tell a progress bar, where one is shown."""
        if not bar.disable:
            bar.set_postfix_str(str(self.pace()), refresh=False)
