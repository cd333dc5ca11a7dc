"""What the weighted layers of a deployed network share."""

from abc import abstractmethod
from collections.abc import Sequence

from unitmargin.layers.arithmetic import Affine
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
