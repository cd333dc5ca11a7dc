"""The deployed network: plain layers, their exact norms, and the file format.

Self-contained: it imports neither ``orthogonal`` nor ``models``, so a deployed network is loaded
and certified without the training code.
"""

from unitmargin.frozen.combination import ConvexCombination as ConvexCombination
from unitmargin.frozen.convolution import CircularConvolution as CircularConvolution
from unitmargin.frozen.dense import Dense as Dense
from unitmargin.frozen.deployed import FrozenNetwork as FrozenNetwork
from unitmargin.frozen.files import ModelFileError as ModelFileError
from unitmargin.frozen.files import load as load
from unitmargin.frozen.files import save as save
from unitmargin.frozen.network import FixedNetwork as FixedNetwork
from unitmargin.frozen.registry import FROZEN_LAYERS as FROZEN_LAYERS
