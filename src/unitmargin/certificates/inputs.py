"""What is certified: a batch of a frozen network's inputs, within its domain unless told else."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from unitmargin.data import ENCODING, Dataset, Samples, is_torch_data
from unitmargin.foundation.choice import require_choice
from unitmargin.foundation.numbers import Numbers, ToNumPy, as_tensor, require_encoded
from unitmargin.frozen import FrozenNetwork, require_frozen

DOMAINS = ("model", "any")
"""Where inputs may lie: in the domain that the model file states, or anywhere."""


BATCH = 256
"""Inputs a forward pass, of samples and data sets that come in no batches."""

Inputs = Numbers | tuple[Numbers, Numbers] | Samples | Dataset | TorchDataset[Any] | DataLoader[Any]


def input_batches(x: object) -> Iterator[object]:
    """The batches of what may be certified, still to be judged; labels are left out."""
    if isinstance(x, Dataset):
        x = x.test
    if isinstance(x, Samples):
        for start in range(0, len(x), BATCH):
            yield x.batch(slice(start, start + BATCH))[0]
    elif is_torch_data(x):
        loader = x if isinstance(x, DataLoader) else DataLoader(x, batch_size=BATCH)  # type: ignore[arg-type]
        for batch in loader:
            yield batch[0] if _holds_inputs(batch, (1, 2)) else batch
    else:
        yield x[0] if isinstance(x, tuple) and _holds_inputs(x, (2,)) else x


def _holds_inputs(batch: object, lengths: tuple[int, ...]) -> bool:
    """Whether it is a pair (inputs, labels), or inputs alone that torch made a list of."""
    listed = isinstance(batch, list | tuple) and len(batch) in lengths
    return listed and isinstance(batch[0], Tensor | np.ndarray | ToNumPy)  # type: ignore[index]


def require_inputs(frozen: FrozenNetwork, x: object, domain: str, first: int = 0) -> Tensor:
    """``x`` as a tensor; raises unless it is a batch that the network was made for.

    Entries that are NaN or infinite lie in every domain: nothing is claimed of their samples.
    ``first`` is the number of the first sample in messages.

    Raises:
        TypeError: a model that is not frozen, what is no tensor, array or data frame, or a data
            frame where the network states an encoding of a table's columns.
        ValueError: another type, shape or device than the network takes, or finite entries outside
            of the domain.
    """
    require_frozen(frozen)
    require_choice("domain", domain, DOMAINS)
    require_encoded("x", x, frozen.facts.get(ENCODING))
    inputs = as_tensor("x", x)
    frozen.require_input(inputs)
    if domain == "model":
        frozen.require_domain(inputs, first)
    return inputs
