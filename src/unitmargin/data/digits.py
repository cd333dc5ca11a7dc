"""Handwritten digits that come with the package: small enough for a first try."""

from pathlib import Path

import numpy as np
import torch

from unitmargin.data.dataset import Dataset
from unitmargin.data.samples import Samples

FILE = Path(__file__).with_suffix(".npz")
"""Values 0..16 and labels in the order of scikit-learn's ``load_digits``."""


def digits() -> Dataset:
    """1797 grey digits of 8 x 8 pixels in ten classes; a fifth of each class is the test set.

    Shapes: inputs are uint8 ``(n, 1, 8, 8)`` with scale 16, so that a batch lies in [0, 1].
    Guarantee: the split is always the same.
    Source: the test set of Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI
    Machine Learning Repository, 1998, doi.org/10.24432/C50P49, under CC BY 4.0; the bytes are those
    of scikit-learn's ``load_digits``.

    Example:
        >>> digits().in_shape
        (1, 8, 8)
    """
    with np.load(FILE, allow_pickle=False) as arrays:
        values, targets = arrays["inputs"], arrays["labels"]
    inputs = torch.from_numpy(values)
    labels = torch.from_numpy(targets.astype(np.int64))
    # RandomState is frozen by NumPy: its numbers are the same in every version.
    random = np.random.RandomState(0)
    is_test = torch.zeros(len(labels), dtype=torch.bool)
    for digit in range(10):
        positions = random.permutation(np.flatnonzero(targets == digit))
        is_test[positions[: round(0.2 * len(positions))]] = True
    train, test = (Samples(inputs[own], labels[own], scale=16.0) for own in (~is_test, is_test))
    return Dataset("digits", train, test, tuple(str(digit) for digit in range(10)))
