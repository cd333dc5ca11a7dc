"""What a layer or head may promise: each promise is one object that knows how it is measured."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

ORTHOGONALITY_TOLERANCE = 1e-5
"""On singular values of float32 weights: 40 times the rounding of an exactly orthogonal 3072-wide
weight, 100 times below what moves a radius in its fourth digit."""

LIPSCHITZ_TOLERANCE = 1e-6
"""On the norm of a layer that promises only to be 1-Lipschitz: a few float32 layers in a branch."""

HEAD_TOLERANCE = 1e-5
"""On the rows of a head: the paper's own figure of pair distances by L-BFGS at 10 classes."""


@dataclass(frozen=True)
class Promise:
    """One statement about a layer or head, and how far it fails.

    Attributes:
        name: as audits print it.
        finding: name of the finding that measures it; empty if nothing is measured.
        fact: name under which freezing records its deviation.
        title: of the deviation, in words.
        tolerance: largest deviation that keeps the promise.
        what: of the singular values of a layer, or of the weight of a head, has to be 1.
        at_most: whether it has to be 1 at most.
    """

    name: str
    finding: str
    fact: str
    title: str
    tolerance: float
    what: Callable[[Tensor], Tensor] = torch.positive
    at_most: bool = False

    def measure(self, subject: Tensor) -> float:
        """The largest deviation in float64, 0 for a subject without numbers."""
        if subject.numel() == 0:
            return 0.0
        excess = self.what(subject.detach().double()) - 1.0
        return float((excess.clamp_min(0.0) if self.at_most else excess.abs()).max())


def _row_norms(weight: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(weight, dim=1)
    return norms


_ORTHOGONALITY = (
    "orthogonality", "orthogonality_error", "orthogonality error", ORTHOGONALITY_TOLERANCE
)  # fmt: skip

GNP = Promise("GNP", *_ORTHOGONALITY)
"""J J^T = I almost everywhere: gradients keep their norm."""

ISOMETRY = Promise("isometry", *_ORTHOGONALITY)
"""J^T J = I with more outputs than inputs: distances are kept, gradients are projected."""

LIPSCHITZ = Promise(
    "1-Lipschitz", "lipschitz", "lipschitz_error", "Lipschitz error", LIPSCHITZ_TOLERANCE,
    at_most=True,
)  # fmt: skip
"""A norm of at most 1, nothing else."""

SCALING = Promise("1/std", "", "", "", 0.0, torch.ones_like)
"""An input normalisation: its constant enters every certificate, and nothing is promised of it."""

UPD = Promise("upd", "upd", "upd_error", "UPD error", HEAD_TOLERANCE, nn.functional.pdist)
"""All rows of a head at distance 1 from each other: unitary pair difference."""

ORTHONORMAL = Promise(
    "orthonormal", "orthonormal_head", "head_error", "head error", HEAD_TOLERANCE,
    torch.linalg.svdvals,
)  # fmt: skip
"""``W W^T = I`` for the weight of a head."""

UNIT_ROWS = Promise(
    "unit_rows", "unit_rows", "row_norm_error", "row-norm error", HEAD_TOLERANCE, _row_norms
)
"""Every row of a head has norm 1; nothing is said of pairs."""

HEAD_PROMISES = {promise.name: promise for promise in (UPD, ORTHONORMAL, UNIT_ROWS)}
"""What the file of a frozen network may state of its head, never measured as another promise."""
