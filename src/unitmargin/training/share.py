"""What one process takes of a batch."""

from typing import NamedTuple

from torch import Tensor


class Share(NamedTuple):
    """What one process takes of a batch, on its device.

    Attributes:
        batch: samples of the whole batch.
    """

    inputs: Tensor
    labels: Tensor
    batch: int
