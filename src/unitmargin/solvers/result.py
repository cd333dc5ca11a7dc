"""What every solver returns: one :class:`MapResult` for a batch."""

from dataclasses import dataclass
from enum import IntEnum

from jaxtyping import Float64, Int64
from torch import Tensor


class Status(IntEnum):
    """How the search ended for one sample.

    ALREADY_MISCLASSIFIED: the margin of the given label is not positive at the input itself.
    FOUND: a point of another class was found and confirmed in float64.
    FAILED: no point of another class was confirmed; this says nothing about the distance.
    """

    ALREADY_MISCLASSIFIED = 0
    FOUND = 1
    FAILED = 2


@dataclass(frozen=True, eq=False)
class MapResult:
    r"""Upper bounds of the minimal adversarial perturbation, one entry a sample.

    .. math:: d(x) = \inf \{ \|p - x\|_2 : f_l(p) \le \max_{j \ne l} f_j(p) \}

    Attributes:
        point: the adversarial point, in float64 and in the shape of the input; the input itself
            where it is already misclassified; NaN where the search failed.
        distance: l2 norm of ``point - x`` in the units of the input, float64; 0 where already
            misclassified; infinite where the search failed.
        status: a :class:`Status` a sample, int64.
        n_forward: forward passes spent on the sample, the final confirmation included.
        n_backward: backward passes spent on the sample.

    Guarantee: at every point with status FOUND a float64 forward pass gave the label a margin of
    at most ``-tau``, ``tau = 1e-10 max(1, max_j |f_j(x)|)``, and the point lies in the box. So
    ``distance`` is never below the true value by more than float64 rounding.
    """

    point: Float64[Tensor, "batch *shape"]
    distance: Float64[Tensor, " batch"]
    status: Int64[Tensor, " batch"]
    n_forward: Int64[Tensor, " batch"]
    n_backward: Int64[Tensor, " batch"]
