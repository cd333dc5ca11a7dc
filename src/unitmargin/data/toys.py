"""Toy sets in the plane, whose boundaries can be drawn."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from numpy.random import RandomState

from unitmargin.data.dataset import Dataset
from unitmargin.data.samples import Samples

NOISE = 0.05

Points = Float[np.ndarray, "n 2"]
Draw = Callable[[int, int, RandomState], Points]


def toy(name: str) -> Dataset:
    """The set of that name in ``TOYS``: 1000 train and 500 test points, the same in every run.

    Shapes: inputs are float32 ``(n, 2)``, about in [-1, 1].

    Example:
        >>> toy("blobs").n_classes
        3
    """
    points, n_classes = TOYS[name]
    train, test = (_samples(points, n_classes, n, seed) for n, seed in ((1000, 1), (500, 2)))
    return Dataset(name, train, test, tuple(str(label) for label in range(n_classes)))


def _samples(points: Draw, n_classes: int, n: int, seed: int) -> Samples:
    random = RandomState(seed)
    labels = np.arange(n) % n_classes
    inputs = np.empty((n, 2), dtype=np.float32)
    for label in range(n_classes):
        chosen = labels == label
        inputs[chosen] = points(label, int(chosen.sum()), random)
    return Samples(torch.from_numpy(inputs), torch.from_numpy(labels))


def _moon(label: int, n: int, random: RandomState) -> Points:
    """Interleaved half circles."""
    angle = random.uniform(0.0, np.pi, n) + np.pi * label
    centre = np.array([-0.3, -0.15]) * (1 - 2 * label)
    return centre + 0.6 * _on_circle(angle) + NOISE * random.randn(n, 2)


def _circle(label: int, n: int, random: RandomState) -> Points:
    """A circle inside another."""
    radius = (0.9, 0.45)[label]
    return radius * _on_circle(random.uniform(0.0, 2 * np.pi, n)) + NOISE * random.randn(n, 2)


def _blob(label: int, n: int, random: RandomState) -> Points:
    """Round clouds of points."""
    centre = 0.65 * _on_circle(np.full(n, 2 * np.pi * label / 3))
    return centre + 3 * NOISE * random.randn(n, 2)


def _spiral(label: int, n: int, random: RandomState) -> Points:
    """Arms that wind around each other."""
    # The square root spreads the points evenly along the arm.
    along = np.sqrt(random.uniform(0.02, 1.0, n))
    arm: Points = along[:, None] * _on_circle(3 * np.pi * along + np.pi * label)
    return 0.95 * arm + 0.4 * NOISE * random.randn(n, 2)


def _on_circle(angle: Float[np.ndarray, " n"]) -> Points:
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


TOYS: dict[str, tuple[Draw, int]] = {
    "moons": (_moon, 2),
    "circles": (_circle, 2),
    "blobs": (_blob, 3),
    "spirals": (_spiral, 2),
}
"""How a class draws its points, and the number of classes."""
