"""What the weighted layers of a deployed network share, and how ``float32-blocked`` sums in them.

That profile sums in an order that the library owns, or in float64; inputs, outputs and what is
stored between the layers are float32 everywhere.
"""

from abc import abstractmethod
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from unitmargin.layers.arithmetic import FLOAT64, Affine, Arithmetic
from unitmargin.layers.bounds import ENTRIES, LayerConstants
from unitmargin.layers.contract import FixedLayer, Gains, Layer
from unitmargin.layers.promises import GNP, ISOMETRY, Promise

WIDE_CHANNELS = 256
"""Convolutions of small maps with up to this many channels run in float64: on one CPU thread that
costs two fifths of a whole float32 pass of the CIFAR-10 network, at 48 and 192 channels, and their
float32 transforms and sums would make more than half of its slack (docs/results.md)."""

Errors = tuple[Affine, Affine]
"""The error made in a layer, and a bound of the numbers met on the way to its output."""


class WeightedLayer(FixedLayer):
    """A fixed layer with a weight: its singular values are known exactly.

    It promises to be semi-orthogonal (all singular values 1), and GNP where it does not grow.

    Weights are stored contiguous, as files hold them: the order of summation, and with it the last
    bit of a logit, depends on the layout.
    """

    @property
    @abstractmethod
    def size(self) -> tuple[int, int]:
        """Output and input width of each matrix of the layer."""

    @property
    def promise(self) -> Promise:
        outputs, inputs = self.size
        return GNP if outputs <= inputs else ISOMETRY

    def gains(self, inner: Sequence[float] | None = None) -> Gains:
        return Layer.gains(self)

    def norm(self) -> float:
        return self.gains().largest


class Wide(WeightedLayer):
    """Mixed in: the layer evaluated in float64; input and output keep the type they come in."""

    def __init__(self, layer: WeightedLayer) -> None:
        tensors = {name: tensor.double() for name, tensor in layer.state_dict().items()}
        super().__init__(**layer.configuration(), **tensors)

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
        output: Tensor = super().forward(x.double())
        return output.to(x.dtype)

    def errors(self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic) -> Errors:
        """Those of the layer in float64, and one rounding of each output to the profile's type."""
        error, largest = super().errors(constants, incoming, FLOAT64)
        output = incoming * constants.norm + Affine(constants.bias) + error
        return error + output * arithmetic.unit + arithmetic.underflow(1, ENTRIES), largest


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
