"""Toy sets in the plane, whose boundaries can be drawn."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from numpy.random import RandomState

from unitmargin.data.samples import Dataset, Samples

N_TRAIN = 1000
N_TEST = 500
TRAIN_SEED = 1
TEST_SEED = 2
NOISE = 0.05

Points = Float[np.ndarray, "n 2"]


def moons() -> Dataset:
    """Two interleaved half circles: 1000 train and 500 test points, the same in every run.

    Shapes: inputs are float32 ``(n, 2)``, about in [-1, 1].

    Example:
        >>> moons().n_classes
        2
    """
    return _dataset("moons", _moon, 2)


def circles() -> Dataset:
    """A circle inside another; for the rest see :func:`moons`.

    Example:
        >>> len(circles().train)
        1000
    """
    return _dataset("circles", _circle, 2)


def blobs() -> Dataset:
    """Three round clouds of points; for the rest see :func:`moons`.

    Example:
        >>> blobs().n_classes
        3
    """
    return _dataset("blobs", _blob, 3)


def spirals() -> Dataset:
    """Two arms that wind around each other; for the rest see :func:`moons`.

    Example:
        >>> spirals().in_shape
        (2,)
    """
    return _dataset("spirals", _spiral, 2)


def _moon(label: int, n: int, random: RandomState) -> Points:
    angle = random.uniform(0.0, np.pi, n) + np.pi * label
    centre = np.array([-0.3, -0.15]) * (1 - 2 * label)
    return centre + 0.6 * _on_circle(angle) + NOISE * random.randn(n, 2)


def _circle(label: int, n: int, random: RandomState) -> Points:
    radius = (0.9, 0.45)[label]
    return radius * _on_circle(random.uniform(0.0, 2 * np.pi, n)) + NOISE * random.randn(n, 2)


def _blob(label: int, n: int, random: RandomState) -> Points:
    centre = 0.65 * _on_circle(np.full(n, 2 * np.pi * label / 3))
    return centre + 3 * NOISE * random.randn(n, 2)


def _spiral(label: int, n: int, random: RandomState) -> Points:
    # The square root spreads the points evenly along the arm.
    along = np.sqrt(random.uniform(0.02, 1.0, n))
    arm: Points = along[:, None] * _on_circle(3 * np.pi * along + np.pi * label)
    return 0.95 * arm + 0.4 * NOISE * random.randn(n, 2)


def _on_circle(angle: Float[np.ndarray, " n"]) -> Points:
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _dataset(
    name: str, points: Callable[[int, int, RandomState], Points], n_classes: int
) -> Dataset:
    train = _samples(points, n_classes, N_TRAIN, RandomState(TRAIN_SEED))
    test = _samples(points, n_classes, N_TEST, RandomState(TEST_SEED))
    return Dataset(name, train, test, tuple(str(label) for label in range(n_classes)))


def _samples(
    points: Callable[[int, int, RandomState], Points], n_classes: int, n: int, random: RandomState
) -> Samples:
    labels = np.arange(n) % n_classes
    inputs = np.empty((n, 2), dtype=np.float32)
    for label in range(n_classes):
        chosen = labels == label
        inputs[chosen] = points(label, int(chosen.sum()), random)
    return Samples(torch.from_numpy(inputs), torch.from_numpy(labels))
