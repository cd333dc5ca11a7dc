r"""The margin, of logits alone: :math:`f_l - f_k` for a label l and every other class k."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def require_several_classes(count: int) -> None:
    """Raise a ValueError for a network of one class."""
    if count < 2:
        raise ValueError(
            f"a network must have at least 2 classes, got {count}: one class has no boundary; "
            "train it on several"
        )


def pair_margins(
    logits: Float[Tensor, "batch classes"], labels: Int[Tensor, " batch"]
) -> Float[Tensor, "batch classes"]:
    """Logit of the label minus every logit; infinite in the label's own column.

    Example:
        >>> pair_margins(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([0]))
        tensor([[inf, 2., 1.]])
    """
    own = logits.gather(1, labels[:, None])
    return (own - logits).scatter(1, labels[:, None], torch.inf)


def margins(
    logits: Float[Tensor, "batch classes"], labels: Int[Tensor, " batch"]
) -> Float[Tensor, " batch"]:
    """Logit of the label minus the largest other one: negative where another class wins."""
    return pair_margins(logits, labels).min(1).values


def ranked(logits: Float[Tensor, "batch classes"]) -> Int[Tensor, "batch classes"]:
    """Classes by falling logit; a tie lists the lower index first, as ``argmax`` does."""
    return logits.sort(dim=1, descending=True, stable=True).indices
