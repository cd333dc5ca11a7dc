"""What the weighted layers of a deployed network share."""

from jaxtyping import Float
from torch import Tensor

from unitmargin.layers.contract import FixedLayer


class WeightedLayer(FixedLayer):
    """A fixed layer with a weight: its singular values are known exactly.

    It promises to be semi-orthogonal (all singular values 1), and GNP where it does not grow.

    Weights are stored contiguous, as files hold them: the order of summation, and with it the last
    bit of a logit, depends on the layout.
    """

    @property
    def gnp(self) -> bool:
        outputs, inputs = self.size
        return outputs <= inputs

    @property
    def size(self) -> tuple[int, int]:
        """Output and input width of each matrix of the layer."""
        raise NotImplementedError

    def singular_values(self) -> Float[Tensor, " values"]:
        """Singular values of the layer's linear part, ascending, float64."""
        raise NotImplementedError

    def norm(self) -> float:
        return float(self.singular_values()[-1])
