"""The layers that a file of a frozen network may name."""

from unitmargin.frozen.combination import BRANCH_LAYERS, ConvexCombination
from unitmargin.frozen.convolution import CircularConvolution
from unitmargin.frozen.dense import Dense
from unitmargin.layers.activations import ACTIVATIONS
from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten, MaxPool, PixelUnshuffle

WITHOUT_WEIGHT = (Flatten, PixelUnshuffle, MaxPool, ScaledAveragePool, Normalize)

FROZEN_LAYERS: dict[str, type[FixedLayer]] = {
    layer.kind: layer for layer in (*WITHOUT_WEIGHT, Dense, CircularConvolution, ConvexCombination)
} | dict(ACTIVATIONS)

BRANCH_LAYERS |= {kind: layer for kind, layer in FROZEN_LAYERS.items() if layer is not Normalize}
