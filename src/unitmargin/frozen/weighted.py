"""What the weighted layers of a deployed network share."""

from abc import abstractmethod
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from unitmargin.layers.arithmetic import FLOAT64, Affine, Arithmetic
from unitmargin.layers.bounds import LayerConstants
from unitmargin.layers.contract import FixedLayer, Gains, Layer
from unitmargin.layers.promises import GNP, ISOMETRY, Promise

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

    @abstractmethod
    def roundings(self, own: LayerConstants, incoming: Affine, arithmetic: Arithmetic) -> Errors:
        """The errors of the layer without those of underflow."""

    @abstractmethod
    def underflow(self, arithmetic: Arithmetic) -> Affine:
        """What underflow may cost the outputs of the layer."""

    def errors(self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic) -> Errors:
        error, largest = self.roundings(constants, incoming, arithmetic)
        return error + self.underflow(arithmetic), largest


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
        error, largest = self.roundings(constants, incoming, FLOAT64)
        output = incoming * constants.norm + Affine(constants.bias) + error
        return error + output * arithmetic.unit + self.underflow(arithmetic), largest
