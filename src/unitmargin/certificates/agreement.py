"""How far apart two sound evaluations may find a radius."""

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.certificates.certify import Certificate
from unitmargin.frozen import FrozenNetwork

AGREEMENT = 1e-9
"""Largest difference of two radii beyond their slack, relative to radii above 1: less than what a
wrong node of a graph could do."""


def allowed_difference(frozen: FrozenNetwork, certificate: Certificate) -> Float[Tensor, " batch"]:
    """Of each radius: ``AGREEMENT``, and the slack of the margin in units of the radius.

    The slack is divided by the distance of the rows of label and runner-up. Where another class is
    the closer one this is a smaller allowance than could be made.
    """
    distances = frozen.pair_constants()[certificate.label, certificate.runner_up]
    slack = certificate.slack / torch.where(distances > 0.0, distances, torch.inf)
    return AGREEMENT * certificate.radius.clamp(min=1.0) + slack
