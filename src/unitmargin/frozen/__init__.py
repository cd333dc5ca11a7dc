"""The deployed network: plain layers, their exact norms, and the file format.

Self-contained: it imports neither ``orthogonal`` nor ``models``, so a deployed network is loaded
and certified without the training code.
"""

from unitmargin.frozen.combination import ConvexCombination
from unitmargin.frozen.convolution import CircularConvolution
from unitmargin.frozen.dense import Dense
from unitmargin.frozen.deployed import FrozenNetwork, require_frozen
from unitmargin.frozen.files import (
    FROZEN_LAYERS,
    LARGEST,
    ModelFileError,
    class_names,
    load,
    save,
)
from unitmargin.frozen.network import FixedNetwork

__all__ = [
    "FROZEN_LAYERS", "LARGEST", "CircularConvolution", "ConvexCombination", "Dense",
    "FixedNetwork", "FrozenNetwork", "ModelFileError", "class_names", "combination", "convolution",
    "dense", "load", "mixing", "profiles", "proof", "reflection", "require_frozen", "rounding",
    "save", "sliced",
]  # fmt: skip
