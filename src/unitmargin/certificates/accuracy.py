"""Certified accuracy and coverage, and the radii at which they are told."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from unitmargin.certificates.boundary import Mask, Values
from unitmargin.certificates.certify import Certificate
from unitmargin.foundation.choice import require_kind
from unitmargin.foundation.numbers import (
    ANY,
    Numbers,
    as_float,
    as_labels,
    as_tensor,
    is_real,
    shown,
)

EPSILONS = (0.0, 36 / 255, 0.25, 72 / 255, 108 / 255, 0.5, 1.0)
"""Radii of the certified-accuracy tables: the field's k/255 and round numbers."""

HEADLINE_EPSILON = 36 / 255
"""The radius that the field quotes first."""


def certified_accuracy(
    certificate: Certificate, labels: Numbers, epsilon: float | Numbers
) -> float:
    """Share of samples that are right with a radius strictly above ``epsilon``.

    At 0 it is clean accuracy without ties. The paper's text says "lower than epsilon".

    Args:
        certificate: of a batch of inputs, from :func:`certify`.
        labels: one class index a sample, ``(batch,)``: a tensor, NumPy array or series.
        epsilon: in input units, one number for all samples or one a sample, ``(batch,)``.

    Raises:
        TypeError: another kind of certificate, labels or thresholds.
        ValueError: no sample, or labels or thresholds of another shape; a threshold that is not
            finite or negative.

    Example:
        >>> from unitmargin import certify
        >>> from unitmargin.frozen import Dense, FrozenNetwork
        >>> halves = torch.tensor([[0.5, 0.0], [-0.5, 0.0]])
        >>> frozen = FrozenNetwork([Dense(halves, torch.zeros(2))], (2,))
        >>> certificate = certify(frozen, torch.tensor([[2.0, 0.0], [0.5, 0.0]]))
        >>> labels = torch.tensor([0, 0])
        >>> certified_accuracy(certificate, labels, 1.0)
        0.5
        >>> certified_accuracy(certificate, labels, torch.tensor([1.0, 0.25]))
        1.0
    """
    step = "pass what certify(frozen, x) returned"
    require_kind("certificate", certificate, Certificate, step)
    batch, labels = certificate.label.shape, as_labels("labels", labels)
    if labels.shape != batch or not len(labels):
        raise ValueError(
            f"labels must be one a sample, shape {tuple(batch)} with a sample at least, got "
            f"{tuple(labels.shape)}; pass the labels of the inputs that were certified"
        )
    given = (
        torch.tensor(as_float(epsilon), dtype=torch.float64)
        if is_real(epsilon)
        else as_tensor("epsilon", epsilon, f"a number, {ANY}")
    )
    thresholds = given.to(certificate.radius.device, torch.float64)
    if thresholds.shape not in ((), batch):
        raise ValueError(
            f"epsilon must be one number or one a sample, shape {tuple(batch)}, got shape "
            f"{tuple(thresholds.shape)}; call once for each of many thresholds"
        )
    if not bool(((thresholds >= 0) & thresholds.isfinite()).all()):
        raise ValueError(
            f"epsilon must be finite and >= 0, got {shown(epsilon)}; clean the thresholds"
        )
    right = certificate.label == labels.to(certificate.label.device)
    return certified_share(right, certificate.radius, thresholds)


def certified_share(right: Mask, radius: Values, epsilon: float | Tensor) -> float:
    """Share of samples that are right with a radius strictly above ``epsilon``, which fits."""
    return int((right & (radius > epsilon)).sum()) / len(right)


def certified_accuracies(
    right: Mask, radius: Values, epsilons: Float[Tensor, " epsilons"]
) -> Float[Tensor, " epsilons"]:
    """:func:`certified_share` at many radii, by one sort."""
    return _above(radius[right], epsilons).double() / len(right)


class Coverage(NamedTuple):
    """How many samples are accepted at each of some thresholds, and how many of those are wrong."""

    accepted: Int64[Tensor, " thresholds"]
    wrong: Int64[Tensor, " thresholds"]


def coverage_beyond(
    right: Mask, radius: Values, thresholds: Float[Tensor, " thresholds"]
) -> Coverage:
    """Samples with a radius strictly above each threshold: what is left when others are rejected.

    A radius of 0 claims nothing and is never accepted.

    Example:
        >>> right, radius = torch.tensor([True, True, False]), torch.tensor([0.5, 0.0, 0.25])
        >>> coverage_beyond(right, radius.double(), torch.tensor([0.0, 0.25]))
        Coverage(accepted=tensor([2, 1]), wrong=tensor([1, 0]))
    """
    return Coverage(_above(radius, thresholds), _above(radius[~right], thresholds))


def _above(radius: Values, thresholds: Float[Tensor, " n"]) -> Int64[Tensor, " n"]:
    """How many radii are strictly above each threshold, by one sort."""
    ordered = radius.double().sort().values
    return len(ordered) - torch.searchsorted(ordered, thresholds.double(), right=True)
