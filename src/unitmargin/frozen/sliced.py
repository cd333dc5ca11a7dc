"""What the deployed layers on slices of maps share: an arrangement, a stack of matrices, biases."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen.spectral import absolute_norm_bound, in_chunks, spectral_norm_bound
from unitmargin.frozen.weighted import WeightedLayer
from unitmargin.layers.arithmetic import UP, norm_bounds, product_up
from unitmargin.layers.bounds import LayerConstants
from unitmargin.layers.slices import Arrangement


class SlicedLayer(WeightedLayer):
    """A layer with ``weight (stack, k, n)`` and ``bias (stack, k)`` for the slices of a map; how
    maps are cut is what the heirs of a kind differ in.

    Raises:
        ValueError: a weight that was made for another arrangement.
    """

    arranged: ClassVar[type[Arrangement]]
    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        weight: Float[Tensor, "stack k n"],
        bias: Float[Tensor, "stack k"],
        map_size: Sequence[int],
        cut: Mapping[str, int],
    ) -> None:
        super().__init__()
        # Its sides are judged there.
        self.arrangement = self.arranged(tuple(map_size), **cut)  # type: ignore[arg-type]
        count, _, side = weight.shape
        self.channels = self.arrangement.channels(count, side)
        if self.channels < 1 or self.arrangement.stack(self.channels) != (count, side):
            raise ValueError(
                "a layer on slices needs a weight of its arrangement, got shape "
                f"{tuple(weight.shape)} for {self.arrangement}; pass the arrangement that the "
                "weight was made for"
            )
        self.register_buffer("weight", weight.contiguous())
        self.register_buffer("bias", bias.contiguous())

    @property
    def size(self) -> tuple[int, int]:
        return self.weight.shape[2], self.weight.shape[2]

    @property
    def slices(self) -> int:
        """How many slices a map has."""
        return self.arrangement.slices(self.channels)

    def weight_constants(self) -> LayerConstants:
        """S and a are the largest of any matrix; b is that of all slices together."""
        chunks = in_chunks(self.weight)
        norm = max(map(spectral_norm_bound, chunks))
        absolute = max(map(absolute_norm_bound, chunks))
        served = self.slices // len(self.weight)
        bias = product_up(float(norm_bounds(self.bias.flatten()[None])), served**0.5 * UP)
        return LayerConstants(norm, absolute, bias)
