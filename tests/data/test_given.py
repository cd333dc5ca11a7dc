"""Data as users have them: all kinds of one content are the same samples."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from unitmargin.data import Samples, as_samples

X, Y = torch.rand(7, 2, 3), torch.arange(7) % 3


class Arrays(Dataset[Any]):
    """What many data sets give: an array and a Python number."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, place: int) -> tuple[np.ndarray, int]:
        if place >= len(X):
            raise IndexError
        return X[place].double().numpy(), int(Y[place])


class Stream(IterableDataset[Any]):
    """Samples without a number of them."""

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(zip(X, Y, strict=True))


KINDS: dict[str, Any] = {
    "samples": Samples(X, Y),
    "pair": (X, Y),
    "tensors": TensorDataset(X, Y),
    "arrays": Arrays(),
    "stream": Stream(),
    "loader": DataLoader(TensorDataset(X, Y), batch_size=3),
    "wide": DataLoader(TensorDataset(X.double(), Y.int()), batch_size=2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data_is_the_same_samples(kind: str) -> None:
    samples = as_samples(KINDS[kind])
    assert samples.sha256 == Samples(X, Y).sha256


class Odd(Arrays):
    def __init__(self, item: Any) -> None:
        self.item = item

    def __getitem__(self, place: int) -> Any:
        return self.item(place)


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (Odd(lambda n: (object(), 0)), TypeError, "data must hold pairs .*got: .*ToTensor"),
        (Odd(lambda n: (X[n], 0.5)), ValueError, "labels of data must be of an integer dtype"),
        (Odd(lambda n: (X[n, : 1 + n % 2], 0)), TypeError, "numbers of one shape, got: .*"),
        (Odd(lambda n: X[n]), TypeError, "data must be Samples, a pair .*got Tensor; pass"),
        (Odd(lambda n: (X[n], 0, 0)), TypeError, "got 3 values; pass all inputs"),
        (Odd(lambda n: (X[n].byte(), 0)), ValueError, "a floating dtype, got torch.uint8; for"),
        (Odd(lambda n: (X[n], [0, 1])), TypeError, "labels of data must be a tensor, .* list;"),
        (Odd(lambda n: (X[n], Y[:2])), ValueError, "one for each of the 7 inputs of a batch"),
        (Odd(lambda n: (X[n] / 0, 0)), ValueError, "data: inputs must be finite"),
        (TensorDataset(X[:0], Y[:0]), ValueError, "data must hold a sample at least, got none"),
    ],
)
def test_data_sets_of_other_things_are_refused(data: Any, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        as_samples(data)
