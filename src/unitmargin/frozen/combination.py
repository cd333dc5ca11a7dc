"""The residual of a deployed 1-Lipschitz network: a convex combination with the input."""

import math
from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.layers.contract import FixedLayer

BRANCH_LAYERS: dict[str, type[FixedLayer]] = {}
"""The layers a stored branch may name: all frozen ones, entered by their registry."""


class ConvexCombination(FixedLayer):
    r"""``t x + (1 - t) B(x)`` with the fixed layers of ``branch`` in a row as B, and 0 <= t <= 1.

    Guarantee: Lipschitz constant at most :math:`t + (1 - t) \prod_i \|B_i\|`, which is what
    ``norm()`` returns; 1 for a branch of norm 1. Not GNP: where the two paths disagree the gradient
    shrinks.
    In a file the branch is part of the configuration, its tensors are named ``branch.INDEX.NAME``.
    Source: Trockman, Kolter, arXiv 2104.07167 (ResNet9).

    Raises:
        ValueError: t outside [0, 1] or no single number; in ``forward``, a branch that changes the
            shape of its input.

    Example:
        >>> import torch
        >>> from unitmargin.layers.activations import Abs
        >>> ConvexCombination(torch.tensor(0.25), [Abs()])(torch.tensor([[-2.0]])).item()
        1.0
    """

    kind = "convex_combination"
    share: Tensor

    def __init__(self, share: Float[Tensor, ""], branch: Sequence[FixedLayer]) -> None:
        super().__init__()
        if share.ndim or not 0.0 <= float(share) <= 1.0:
            raise ValueError(
                f"share of a convex combination must be one number in [0, 1], got "
                f"{share.tolist()}; pass the sigmoid of the gate"
            )
        self.register_buffer("share", share)
        self.branch = nn.ModuleList(branch)

    def sublayers(self) -> list[FixedLayer]:
        """The layers of the branch, in order."""
        return [layer for layer in self.branch if isinstance(layer, FixedLayer)]

    def configuration(self) -> dict[str, Any]:
        return {
            "branch": [
                {"kind": layer.kind, "configuration": layer.configuration()}
                for layer in self.sublayers()
            ]
        }

    @classmethod
    def rebuild(
        cls, configuration: dict[str, Any], tensors: dict[str, Tensor]
    ) -> "ConvexCombination":
        tensors = dict(tensors)
        branch = []
        for index, specification in enumerate(configuration["branch"]):
            kind = specification["kind"]
            if kind not in BRANCH_LAYERS:
                raise ValueError(f"unknown layer kind {kind!r}, known: {', '.join(BRANCH_LAYERS)}")
            prefix = f"branch.{index}."
            own = [name for name in tensors if name.startswith(prefix)]
            state = {name.removeprefix(prefix): tensors.pop(name) for name in own}
            branch.append(BRANCH_LAYERS[kind].rebuild(specification["configuration"], state))
        return cls(branch=branch, **tensors)

    def forward(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        output = x
        for layer in self.branch:
            output = layer(output)
        if output.shape != x.shape:  # a sum that broadcasts would not be a convex combination
            raise ValueError(
                f"the branch must keep the shape {tuple(x.shape[1:])} of its input, got "
                f"{tuple(output.shape[1:])}; move what changes it out of the branch"
            )
        return self.share * x + (1.0 - self.share) * output

    def norm(self) -> float:
        share = float(self.share)
        return share + (1.0 - share) * math.prod(layer.norm() for layer in self.sublayers())
