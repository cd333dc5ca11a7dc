"""Losses on the logits of a signed distance classifier: margins are distances, in input units.

A new loss is one function and one line in ``LOSSES``; its parameters are training options.
"""

import inspect
from collections.abc import Callable
from functools import partial

from jaxtyping import Float, Int
from torch import Tensor, nn

Logits = Float[Tensor, "batch c"]
Labels = Int[Tensor, " batch"]
SoftLabels = Float[Tensor, "batch c"]
"""Shares of the classes, one row a sample."""

Mean = Float[Tensor, ""]


def multi_margin(logits: Logits, labels: Labels, margin: float) -> Mean:
    r"""Multi-margin loss, :math:`\frac1C \sum_{k \ne y} \max(0, m - (f_y - f_k))`, batch mean.

    For a UGNN the margin ``m`` is the radius to reach (the paper trains with m = 0.5); for a
    network with an orthonormal head it is sqrt 2 times the radius.
    Source: the paper, section 5.
    """
    return nn.functional.multi_margin_loss(logits, labels, margin=margin)


def offset_cross_entropy(
    logits: Logits, labels: Labels | SoftLabels, offset: float, temperature: float
) -> Mean:
    r"""Cross-entropy of :math:`(f - \text{offset} \cdot \mathrm{onehot}(y)) / \text{temperature}`.

    The offset asks for a margin, the temperature sets how much larger margins still pay. Soft
    labels take the place of onehot(y).
    Source: Prach, Lampert, arXiv 2208.03160 (there times the temperature).
    """
    soft = labels if labels.ndim > 1 else nn.functional.one_hot(labels, logits.shape[1])
    shifted = logits - offset * soft.to(logits.dtype)
    return nn.functional.cross_entropy(shifted / temperature, labels)


LOSSES: dict[str, Callable[..., Tensor]] = {
    loss.__name__: loss for loss in (multi_margin, offset_cross_entropy)
}
"""Losses by name; a parameter behind logits and labels is the training option of its name."""

SOFT_LABELS = (offset_cross_entropy.__name__,)
"""Losses that take soft labels."""


def bound_loss(name: str, options: object) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of that name as a function of logits and labels, its parameters from the options."""
    loss = LOSSES[name]
    own = list(inspect.signature(loss).parameters)[2:]
    return partial(loss, **{parameter: getattr(options, parameter) for parameter in own})
