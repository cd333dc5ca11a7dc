"""Certified accuracy, and the radii at which it is told."""

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.certificates.boundary import Mask, Values

EPSILONS = (0.0, 36 / 255, 0.25, 72 / 255, 108 / 255, 0.5, 1.0)
"""Radii of the certified-accuracy tables: the field's k/255 and round numbers."""

HEADLINE_EPSILON = 36 / 255
"""The radius that the field quotes first."""


def certified_accuracy(right: Mask, radius: Values, epsilon: float) -> float:
    """Share of samples that are right with a radius strictly above ``epsilon``.

    At 0 it is clean accuracy without ties. The paper's text says "lower than epsilon"; a prediction
    is robust at epsilon if its radius is at least that.

    Example:
        >>> certified_accuracy(torch.tensor([True, False]), torch.tensor([1.0, 2.0]), 0.5)
        0.5
    """
    return int((right & (radius > epsilon)).sum()) / len(right)


def certified_accuracies(
    right: Mask, radius: Values, epsilons: Float[Tensor, " epsilons"]
) -> Float[Tensor, " epsilons"]:
    """:func:`certified_accuracy` at many radii, by one sort."""
    claimed = radius[right].double().sort().values
    above = len(claimed) - torch.searchsorted(claimed, epsilons.double(), right=True)
    return above.double() / len(right)
