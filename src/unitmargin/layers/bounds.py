"""What is proved of one layer: bounds of its weights, and of the rounding of its evaluation.

Equation numbers are those of docs/soundness.md.
"""

from dataclasses import dataclass

from unitmargin.layers.arithmetic import Affine, require_bound

ENTRIES = 2**40
"""More numbers than any activation has: in float32 they take four terabytes."""


@dataclass(frozen=True)
class LayerConstants:
    """Proved bounds of a layer's weights, the same for all profiles.

    Attributes:
        norm: S, of the layer's Lipschitz constant.
        absolute: a, of the spectral norm of the matrix of absolute values; 0 without a weight.
        bias: b, of the norm of the bias as it is added to one output.
        branch: the constants of the layers of a convex combination, or of the affine map inside a
            reflection.

    Raises:
        ValueError: a negative number or NaN.
    """

    norm: float
    absolute: float = 0.0
    bias: float = 0.0
    branch: tuple["LayerConstants", ...] = ()

    def __post_init__(self) -> None:
        require_bound("the norm of a layer", self.norm)
        require_bound("the absolute norm of a layer", self.absolute)
        require_bound("the norm of a layer's bias", self.bias)


@dataclass(frozen=True)
class LayerRounding:
    """What one layer adds to the error of a logit difference.

    Attributes:
        kind: the layer's registered name.
        norm: S, its proved Lipschitz bound.
        error: e, the error made in the layer, as a function of the input's norm.
        output: N, the norm of its computed output; for the head, of its input.
        largest: bound of any number computed on the way, input and output included.
        total: error of its computed output, earlier layers included; within a branch, earlier
            layers of the branch.
        inside: the layers of its branch.
        passed: factor by which the error of the branch's output enters ``error``.

    Raises:
        ValueError: a negative number or NaN.
    """

    kind: str
    norm: float
    error: Affine
    output: Affine
    largest: Affine
    total: Affine
    inside: tuple["LayerRounding", ...] = ()
    passed: float = 0.0

    def __post_init__(self) -> None:
        require_bound("the norm of a layer", self.norm)
        require_bound("the factor of a branch", self.passed)
