"""What every layer owes: one abstract type for fixed layers, one for trainable ones."""

from typing import Any, ClassVar

from torch import Tensor, nn


class FixedLayer(nn.Module):
    """A layer that a frozen network may hold: it knows its name, its configuration and its norm.

    ``norm()`` is the Lipschitz constant of the layer in the l2 norm; a rearrangement, a pooling
    over disjoint windows and a GNP activation have norm exactly 1, which is the default.
    ``gnp`` says whether ``J J^T = I`` is promised almost everywhere; the default promises
    nothing beyond the norm.
    """

    kind: ClassVar[str]

    @property
    def gnp(self) -> bool:
        return False

    def configuration(self) -> dict[str, Any]:
        """The arguments, as JSON values, that rebuild the layer (tensors excluded)."""
        return {}

    @classmethod
    def rebuild(cls, configuration: dict[str, Any], tensors: dict[str, Tensor]) -> "FixedLayer":
        """Inverse of ``configuration()`` and of the layer's state dictionary."""
        return cls(**configuration, **tensors)

    def norm(self) -> float:
        return 1.0

    def rounding(self, unit: float) -> float:
        """Largest error of one evaluation, relative to the norm of the layer's input, in
        arithmetic with the given unit roundoff; 0 for layers that move and compare numbers only.

        A layer without this statement is not certified: its error is unknown.
        """
        raise ValueError(
            f"{type(self).__name__} states no rounding error, so its network has no sound radius; "
            "define its rounding(unit) method"
        )


class GNPLayer(FixedLayer):
    """A fixed layer with ``J J^T = I`` almost everywhere."""

    @property
    def gnp(self) -> bool:
        return True


class ExactLayer(GNPLayer):
    """A GNP layer that moves, compares and negates numbers: nothing is rounded."""

    def rounding(self, unit: float) -> float:
        return 0.0
