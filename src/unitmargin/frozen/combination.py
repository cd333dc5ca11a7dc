"""The residual of a deployed 1-Lipschitz network: a convex combination with the input."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.foundation.choice import choose
from unitmargin.layers.arithmetic import UP, Affine, Arithmetic, gamma, product_up
from unitmargin.layers.bounds import ENTRIES, LayerConstants, LayerRounding
from unitmargin.layers.contract import FixedLayer, Gains, inner_gains, require_hidden

COMBINATION_ROUNDINGS = 3
"""Most roundings of a path of a convex combination: one minus the share, a product, the sum."""

BRANCH_LAYERS: dict[str, type[FixedLayer]] = {}
"""The layers a stored branch may name: all frozen ones, entered by ``files``."""


class ConvexCombination(FixedLayer):
    r"""``t x + (1 - t) B(x)`` with the fixed layers of ``branch`` in a row as B, and 0 <= t <= 1.

    Guarantee: Lipschitz constant at most :math:`t + (1 - t) \prod_i \|B_i\|`, which is what
    ``norm()`` returns; 1 for a branch of norm 1. Not GNP: where the two paths disagree the gradient
    shrinks.
    In a file the branch is part of the configuration, its tensors are named ``branch.INDEX.NAME``.
    Source: Trockman, Kolter, arXiv 2104.07167 (ResNet9).

    Raises:
        ValueError: t outside [0, 1] or no single number, an input normalisation in the branch; in
            ``forward``, a branch that changes the shape of its input.

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
        self.branch = nn.ModuleList(map(require_hidden, branch))

    def sublayers(self) -> list[FixedLayer]:
        """The layers of the branch, in order."""
        return [require_hidden(layer) for layer in self.branch]

    def configuration(self) -> dict[str, Any]:
        layers = self.sublayers()
        return {
            "branch": [{"kind": one.kind, "configuration": one.configuration()} for one in layers]
        }

    @classmethod
    def rebuild(cls, configuration: dict[str, Any], tensors: dict[str, Tensor]) -> FixedLayer:
        tensors = dict(tensors)
        branch = []
        for index, specification in enumerate(configuration["branch"]):
            layer = choose("layer kind of a branch", specification["kind"], BRANCH_LAYERS)
            state = take_prefixed(tensors, f"branch.{index}.")
            branch.append(layer.rebuild(specification["configuration"], state))
        return cls(branch=branch, **tensors)

    def in_type(self, dtype: torch.dtype) -> FixedLayer:
        branch = [layer.in_type(dtype) for layer in self.sublayers()]
        return ConvexCombination(self.share.detach().to(dtype, copy=True), branch)

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
        return self.gains().largest

    def gains(self, inner: Sequence[float] | None = None) -> Gains:
        return combined_gains(float(self.share), inner_gains(self, inner))

    def constants(self) -> LayerConstants:
        """(16): S of ``t x + (1 - t) B(x)`` from bounds of the norms of B's layers."""
        branch = tuple(layer.constants() for layer in self.sublayers())
        share = float(self.share)
        inner = reduce(product_up, (one.norm for one in branch), 1.0)
        norm = (share + product_up(1.0 - share, inner)) * UP
        return LayerConstants(norm, branch=branch)

    def bound_rounding(
        self, constants: LayerConstants, incoming: Affine, arithmetic: Arithmetic
    ) -> LayerRounding:
        """(17): errors accumulate in the branch, then each of two paths meets three roundings."""
        share = float(self.share)
        rest = 1.0 - share
        norm, total = incoming, Affine()
        rows: list[LayerRounding] = []
        for sublayer, own in zip(self.sublayers(), constants.branch, strict=True):
            row = sublayer.bound_rounding(own, norm, arithmetic)
            total = (total * own.norm + row.error) * UP
            norm = row.output
            rows.append(replace(row, total=total))
        paths = incoming * share + norm * rest
        error = total * rest + paths * gamma(COMBINATION_ROUNDINGS, arithmetic.unit)
        error = error + arithmetic.underflow(COMBINATION_ROUNDINGS, ENTRIES)
        output = (paths + error) * UP
        largest = sum((row.largest for row in rows), incoming + output)
        return LayerRounding(
            self.kind, constants.norm, error, output, largest, error, tuple(rows), rest
        )


def take_prefixed(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Moves the tensors with the prefix out of the dictionary, by the rest of their names."""
    own = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in own}


def combined_gains(share: float, inner: Sequence[float]) -> Gains:
    """By the triangle inequality the gain lies between t - (1 - t) |B| and t + (1 - t) |B|."""
    branch = (1.0 - share) * math.prod(inner)
    return Gains(max(0.0, share - branch), share + branch)
