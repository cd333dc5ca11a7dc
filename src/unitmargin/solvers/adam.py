"""Adam with one independent state a row, for solvers that drop rows while they run."""

import torch

from unitmargin.solvers.geometry import Mask, Vectors

FIRST_DECAY, SECOND_DECAY, FLOOR = 0.9, 0.999, 1e-8
"""Published: averages of gradient and squared gradient, and what is added to the latter's root."""


class Adam:
    """Running averages of gradients of one shape; every row has made the same steps."""

    def __init__(self, like: Vectors) -> None:
        self.first, self.second = torch.zeros_like(like), torch.zeros_like(like)
        self.steps = 0

    def step(self, gradient: Vectors, rate: float) -> Vectors:
        """The move that follows a gradient; its entries are about ``rate`` or smaller."""
        self.steps += 1
        self.first.lerp_(gradient, 1.0 - FIRST_DECAY)
        self.second.lerp_(gradient.square(), 1.0 - SECOND_DECAY)
        first = self.first / (1.0 - FIRST_DECAY**self.steps)
        second = self.second / (1.0 - SECOND_DECAY**self.steps)
        return -rate * first / (second.sqrt() + FLOOR)

    def keep(self, kept: Mask) -> None:
        """Forget the other rows."""
        self.first, self.second = self.first[kept], self.second[kept]
