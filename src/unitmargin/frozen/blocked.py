"""Sums of the ``float32-blocked`` profile: in an order that the library owns, or in float64.

Inputs, outputs and what is stored between the layers are float32 everywhere.
"""

from jaxtyping import Float
from torch import Tensor

WIDE_CHANNELS = 256
"""Convolutions of small maps with up to this many channels run in float64: on one CPU thread that
costs two fifths of a whole float32 pass of the CIFAR-10 network, at 48 and 192 channels, and their
float32 transforms and sums would make more than half of its slack (docs/results.md)."""


def blocked_product(
    left: Float[Tensor, "*b m n"], right: Float[Tensor, "*b k n"], chunk: int
) -> Float[Tensor, "*b m k"]:
    """``left @ right.mT`` by chunks of n, added pairwise in a fixed tree.

    An entry sums at most ``chunk`` products in one dot product and meets at most
    ``ceil(log2(ceil(n / chunk)))`` additions after it.
    """
    chunks = -(-left.shape[-1] // chunk)
    if chunks <= 1:
        return left @ right.mT
    middle = (chunks + 1) // 2 * chunk
    first = blocked_product(left[..., :middle], right[..., :middle], chunk)
    return first.add_(blocked_product(left[..., middle:], right[..., middle:], chunk))
