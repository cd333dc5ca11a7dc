"""The handwritten digits that come with scikit-learn: small enough for a first try."""

import numpy as np
import torch

from unitmargin.data.samples import Dataset, Samples


def digits() -> Dataset:
    """1797 grey digits of 8 x 8 pixels in ten classes; a fifth of each class is the test set.

    Shapes: inputs are uint8 ``(n, 1, 8, 8)`` with scale 16, so that a batch lies in [0, 1].
    Guarantee: the split is always the same.

    Example:
        >>> digits().in_shape
        (1, 8, 8)
    """
    from sklearn.datasets import load_digits

    values, targets = load_digits(return_X_y=True)
    inputs = torch.from_numpy(values.astype(np.uint8)).reshape(-1, 1, 8, 8)
    labels = torch.from_numpy(targets.astype(np.int64))
    # RandomState is frozen by NumPy: its numbers are the same in every version.
    random = np.random.RandomState(0)
    is_test = torch.zeros(len(labels), dtype=torch.bool)
    for digit in range(10):
        positions = random.permutation(np.flatnonzero(targets == digit))
        is_test[positions[: round(0.2 * len(positions))]] = True
    train, test = (Samples(inputs[own], labels[own], scale=16.0) for own in (~is_test, is_test))
    return Dataset("digits", train, test, tuple(str(digit) for digit in range(10)))
