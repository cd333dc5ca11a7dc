"""Two points of a ray, before and behind a threshold, which secants bring together."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from unitmargin.solvers.geometry import Mask, Rows, Values

AIM = 0.1
"""Distance from the threshold at which a secant aims, in units of the smaller height of its two
ends: a trial on either side in turn closes the bracket from both ends."""

HALVE_EVERY = 3
"""One trial in so many halves the bracket, so that a bent height cannot stall the others."""

Trial = Callable[[Values, Rows], tuple[Values, Mask]]
"""Heights above the threshold at these factors of these rows' rays, and which are behind it."""


@dataclass
class Bracket:
    """Factors of the rays of some rows, heights there, and the largest distance of an aim.

    Attributes:
        low, high: factors before and behind the threshold.
        before, behind: heights there, at least 0 and at most 0.
        largest_aim: in the unit of heights.
    """

    low: Values
    high: Values
    before: Values
    behind: Values
    largest_aim: Values

    def narrow(self, trial: Trial, trials: int, width: float) -> None:
        """Move both ends towards the threshold, until they are so near or the trials are used up.

        Cost: one evaluation a trial of the rows whose bracket is wider; about 5 trials where the
        height is linear at the threshold.
        """
        for count in range(trials):
            rows = (self.high - self.low > width).nonzero().squeeze(1)
            if len(rows) == 0:
                return
            factor = self._next(count)[rows]
            height, crossed = trial(factor, rows)
            far, near = rows[crossed], rows[~crossed]
            self.high[far], self.behind[far] = factor[crossed], height[crossed]
            self.low[near], self.before[near] = factor[~crossed], height[~crossed]

    def _next(self, count: int) -> Values:
        if count % HALVE_EVERY == HALVE_EVERY - 1:
            return 0.5 * (self.low + self.high)
        aim = torch.minimum(AIM * torch.minimum(self.before, -self.behind), self.largest_aim)
        height = self.before - (aim if count % 2 else -aim)
        share = (height / (self.before - self.behind)).clamp(0.0, 1.0)
        return self.low + share * (self.high - self.low)
