"""Losses on the logits of a signed distance classifier: margins are distances, in input units."""

from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor, nn

Loss = Callable[[Tensor, Tensor], Tensor]


def multi_margin(
    logits: Float[Tensor, "batch c"], labels: Int[Tensor, " batch"], margin: float
) -> Float[Tensor, ""]:
    r"""Multi-margin loss, :math:`\frac1C \sum_{k \ne y} \max(0, m - (f_y - f_k))`, batch mean.

    For a UGNN the margin ``m`` is the radius to reach (the paper trains with m = 0.5); for a
    network with an orthonormal head it is sqrt 2 times the radius.
    Source: the paper, section 5.
    """
    return nn.functional.multi_margin_loss(logits, labels, margin=margin)


def offset_cross_entropy(
    logits: Float[Tensor, "batch c"],
    labels: Int[Tensor, " batch"],
    offset: float,
    temperature: float,
) -> Float[Tensor, ""]:
    r"""Cross-entropy of :math:`(f - \text{offset} \cdot \mathrm{onehot}(y)) / \text{temperature}`.

    The offset asks for a margin, the temperature sets how much larger margins still pay.
    Source: Prach, Lampert, arXiv 2208.03160 (there times the temperature).
    """
    shifted = logits - offset * nn.functional.one_hot(labels, logits.shape[1]).to(logits.dtype)
    return nn.functional.cross_entropy(shifted / temperature, labels)


def build_loss(name: str, margin: float, offset: float, temperature: float) -> Loss:
    """The loss of the given name as a function of logits and labels.

    Raises:
        ValueError: unknown name, or a temperature that is not positive.
    """
    if temperature <= 0:
        raise ValueError(f"temperature must be positive, got {temperature}; try 0.1")
    losses: dict[str, Loss] = {
        "multi_margin": lambda logits, labels: multi_margin(logits, labels, margin),
        "offset_cross_entropy": lambda logits, labels: offset_cross_entropy(
            logits, labels, offset, temperature
        ),
    }
    if name not in losses:
        raise ValueError(f"loss must be one of {', '.join(losses)}, got {name!r}; choose one")
    return losses[name]
