"""What a training takes over from a teacher."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


class Lesson(NamedTuple):
    """What a teacher came to.

    Attributes:
        labels: shares of the classes, one row a sample.
        seconds, core_seconds: of its training, in this process.
    """

    labels: Float[Tensor, "n c"]
    seconds: float
    core_seconds: float
