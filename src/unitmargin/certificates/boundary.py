"""Moving a point to the boundary of two classes, where the margin is linearised."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from unitmargin.layers.margin import pair_margins, ranked, require_several_classes

Inputs = Float[Tensor, "batch *shape"]
"""Inputs or displacements, one a sample."""

Labels = Int[Tensor, " batch"]
"""One class a sample."""

Values = Float[Tensor, " batch"]
"""One number a sample."""

Mask = Bool[Tensor, " batch"]
"""Which samples are meant."""

TINY = torch.finfo(torch.float64).tiny
"""In place of a divisor of zero."""


class Crossing(NamedTuple):
    """The way from an input to the zero of its linearised margin.

    Attributes:
        logits, label: of the input; the label is the given one, or the predicted one.
        move: what is added to the input.
    """

    logits: Float[Tensor, "batch classes"]
    label: Labels
    move: Inputs


def move_to_boundary(
    network: nn.Module, x: Inputs, label: Labels | None = None, rival: Labels | None = None
) -> Crossing:
    r"""One Newton step, :math:`-M g / \|g\|^2` with g the gradient of the margin M.

    For a signed distance classifier it ends at the closest point of the boundary. Label and rival
    are the two largest logits if they are left out.
    Cost: one forward and one backward pass.
    Source: the paper, section 3, observation on multi-class signed distance classifiers.
    """
    with torch.inference_mode(False), torch.enable_grad():
        probe = x.detach().clone().requires_grad_(True)
        logits = network(probe)
        require_several_classes(logits.shape[1])
        order = ranked(logits.detach())
        label = order[:, 0] if label is None else label
        rival = order[:, 1] if rival is None else rival
        margin = pair_margins(logits, label).gather(1, rival[:, None]).squeeze(1)
        (gradient,) = torch.autograd.grad(margin.sum(), probe)
    squared = gradient.flatten(1).square().sum(1)
    steps = torch.where(squared > 0, margin.detach() / squared.clamp_min(TINY), 0.0)
    step = spread_over(steps, x)
    return Crossing(logits.detach(), label, -step * gradient)


def spread_over(values: Shaped[Tensor, " batch"], inputs: Tensor) -> Tensor:
    """One value a sample, shaped so that it multiplies or masks inputs."""
    return values.view(-1, *(1,) * (inputs.ndim - 1))
