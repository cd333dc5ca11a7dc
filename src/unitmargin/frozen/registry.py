"""The layers that a file of a frozen network may name."""

from unitmargin.activations import ACTIVATIONS
from unitmargin.fixed import (
    FixedLayer,
    Flatten,
    MaxPool,
    Normalize,
    PixelUnshuffle,
    ScaledAveragePool,
)
from unitmargin.frozen.layers import CircularConvolution, Dense
from unitmargin.frozen.residual import BRANCH_LAYERS, ConvexCombination

FROZEN_LAYERS: dict[str, type[FixedLayer]] = {
    layer.kind: layer
    for layer in (
        Flatten,
        PixelUnshuffle,
        MaxPool,
        ScaledAveragePool,
        Normalize,
        Dense,
        CircularConvolution,
        ConvexCombination,
    )
} | dict(ACTIVATIONS)

BRANCH_LAYERS |= {kind: layer for kind, layer in FROZEN_LAYERS.items() if layer is not Normalize}
