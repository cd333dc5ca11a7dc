r"""Unitary-pair-difference heads: :math:`\|W_h - W_k\| = 1` for all pairs of rows (UPD).

C points at mutual distance 1 are a regular simplex, so every UPD matrix is
:math:`W = S Q + 1 t^T`: S the fixed simplex of edge 1, Q with orthonormal rows, t a shift common
to all logits that changes neither label nor margin. Source: the paper, section 4.2.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.foundation.numbers import require_whole
from unitmargin.frozen.dense import Dense
from unitmargin.heads.head import MORE_FEATURES, Head
from unitmargin.layers.contract import ManifoldParameters
from unitmargin.layers.promises import UPD
from unitmargin.orthogonal.cholesky import cholesky
from unitmargin.orthogonal.polar import polar, polish

LBFGS_STEPS = 3
"""Steps of the paper (appendix: "3 iterations"); each is one run of ``LBFGS_INNER_STEPS``, as in
its listing, where one optimiser step runs up to 20 inner iterations."""

LBFGS_INNER_STEPS = 20

LBFGS_MEMORY = 10
"""Pairs kept for the inverse Hessian."""

LBFGS_FLOOR = 1e-9
"""Largest entry of the gradient of Psi / C at which the iteration stands still. Distances are then
1 to about C / 8 of it, and the pairs that came before are still 1e6 times their rounding errors."""

LBFGS_CURVATURE = 1e-4
"""A pair counts if s.y > this * |s| |y|. At a simplex the cosine is at least 2 / sqrt(C), 0.06 for
1000 classes, so only rounding errors and concave stretches are left out."""


def squared_distances(rows: Float[Tensor, "c m"]) -> Float[Tensor, "c c"]:
    """Squared distance of all row pairs by one Gram matrix, in C m C: the squared norms of the rows
    of the paper's ``A^(C) U``, where A^(C) has one row e_h - e_k for each pair (appendix)."""
    centred = rows - rows.mean(0, keepdim=True)
    gram = centred @ centred.mT
    squares = gram.diagonal()
    return squares[:, None] + squares[None, :] - 2.0 * gram


def psi(rows: Float[Tensor, "c m"]) -> Float[Tensor, ""]:
    r""":math:`\Psi(U) = \sum_{h<k} (\|U_h - U_k\|^2 - 1)^2`, the paper's equation of section 4.2.

    The listing averages over the pairs instead; the minimisers are the same.
    """
    classes = rows.shape[0]
    off_diagonal = 1.0 - torch.eye(classes, dtype=rows.dtype, device=rows.device)
    return 0.5 * ((squared_distances(rows) - off_diagonal).square() * off_diagonal).sum()


def simplex(classes: int, dtype: torch.dtype = torch.float32) -> Float[Tensor, "c less"]:
    """Regular simplex of edge 1: ``classes`` points in R^(classes-1), centred, as rows.

    Built in float64 (Helmert's basis divided by sqrt 2), so pair distances are 1 to rounding.

    Example:
        >>> torch.cdist(simplex(3), simplex(3))[0].tolist()
        [0.0, 1.0, 1.0]
    """
    scales = [(number * (number + 1)) ** -0.5 for number in range(1, classes)]
    ends = [-number * scale for number, scale in enumerate(scales, start=1)]
    points = torch.tensor(scales, dtype=torch.float64).repeat(classes, 1).triu()
    points.diagonal(-1).copy_(torch.tensor(ends, dtype=torch.float64))
    return (points / math.sqrt(2.0)).to(dtype)


class UPDHead(Head):
    r"""Output layer :math:`g(x) = W x + b` with all pair differences of W of norm 1.

    A subclass says how ``weight()`` comes from the parameter ``raw``: ``(classes, features)``, or
    what the subclass puts in its place (:class:`ManifoldUPD`).
    Raises:
        ValueError: fewer features than the head needs for its number of classes.
    """

    promise = UPD
    spare_features = 0
    products = 0
    """Products of the weight with a square matrix of its rows that make it, or cost as much."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__(classes)
        needed = classes - self.spare_features
        if features < needed:
            raise ValueError(
                f"this UPD head needs at least {needed} features for {classes} classes, got "
                f"{features}; {MORE_FEATURES}, or append columns of zeros to the inputs if they "
                "are as few (of a table under another scale than features)"
            )
        frame = nn.init.orthogonal_(torch.empty(min(classes, features), features))
        start = torch.zeros(classes, features)
        start[: frame.shape[0]] = frame / math.sqrt(2.0)
        self.raw = nn.Parameter(start)
        self.bias = nn.Parameter(torch.zeros(classes))

    def making_cost(self) -> float:
        return float(self.products * len(self.bias) * self.raw.numel())

    def freeze(self) -> Dense:
        """The deployed head: the exact projection on the UPD set in float64, rows centred.

        Centring subtracts one common row, which changes no margin and no label.
        """
        weight = self.weight().detach()
        points = simplex(weight.shape[0], torch.float64).to(weight.device)
        frame = polish(polar(points.mT @ weight.double()))
        return Dense(points @ frame, self.bias.detach().double())


class BoundedUPD(UPDHead):
    r"""Bounded head :math:`W = Q / \sqrt 2` with :math:`Q Q^T = I`: row norms are 1/sqrt 2.

    Guarantee: pair distances 1 to 1e-6 in float32, for rows of a condition number up to 1e5. Needs
    ``features >= classes``.
    Source: the paper, section 4.2, bounded UPD layer (there written with Q as m x C).
    """

    products = 2

    def weight(self) -> Float[Tensor, "c m"]:
        # In float64: the error of a Cholesky factorisation grows with the squared condition number.
        return (cholesky(self.raw.double()) / math.sqrt(2.0)).to(self.raw.dtype)


class SimplexUPD(UPDHead):
    r"""Unbounded head in closed form: :math:`W = S\,\mathrm{polar}(S^T U) + 1\,\bar u`.

    The exact projection of U on the UPD set (:math:`\bar u` the mean row of U). The L-BFGS
    iteration of the paper converges to the same point up to the square of U's distance from the
    set: 1e-3 for 10 classes and 512 features.
    Guarantee: pair distances 1 to 1e-6 in float32, for 2 to 1000 classes, from any U whose mean row
    has entries up to 3, since it is added in float32; the gradient is finite where the differences
    of the rows of U are independent, as at the start. Of rows of zeros, or two that are equal, it
    is not.
    Needs ``features >= classes - 1``. Cost: one SVD of (classes - 1) x features.

    Example:
        >>> w = SimplexUPD(64, 10).weight()
        >>> bool((torch.nn.functional.pdist(w) - 1).abs().max() < 1e-6)
        True
    """

    spare_features = 1
    products = 12
    """The SVD takes most of it: measured 11 to 15 from 300 x 600 to 1000 x 2048 on a core."""

    def weight(self) -> Float[Tensor, "c m"]:
        points = simplex(self.raw.shape[0], torch.float64).to(self.raw.device)
        raw = self.raw.double()
        return (points @ polar(points.mT @ raw) + raw.mean(0)).to(self.raw.dtype)


class ManifoldUPD(UPDHead):
    r"""Simplex head whose parameter is its frame: :math:`W = S Q`, Q on the manifold.

    The classifiers are those of :class:`SimplexUPD`, without a decomposition at every step.
    Needs ``features >= classes - 1``; train it with ``build_optimizers``.
    Guarantee: pair distances 1 to 1e-5 in float32.

    Example:
        >>> w = ManifoldUPD(64, 10).weight()
        >>> bool((torch.nn.functional.pdist(w) - 1).abs().max() < 1e-6)
        True
    """

    spare_features = 1
    products = 1

    def __init__(self, features: int, classes: int) -> None:
        super().__init__(features, classes)
        self.classes = classes
        frame = nn.init.orthogonal_(torch.empty(classes - 1, features))
        self.raw = nn.Parameter(frame)

    def weight(self) -> Float[Tensor, "c m"]:
        points = simplex(self.classes, torch.float64).to(self.raw.device)
        return (points @ self.raw.double()).to(self.raw.dtype)

    def manifold_parameters(self) -> ManifoldParameters:
        return ManifoldParameters(real=[self.raw])


class LbfgsUPD(UPDHead):
    r"""Unbounded head as in the paper: W(U) is the L-BFGS iterate of Psi that starts at U.

    A fixed number of steps, differentiable in U through the unrolled iteration, and one and the
    same tensor for training and evaluation (the listing projects in place and forgets U).
    Guarantee: pair distances 1 to 1e-6 in float32 from any start whose entries deviate from a UPD
    matrix by up to 0.3 for 2 to 16 classes, for up to 43 with 1.5 features a class or more, and by
    up to 0.05 for 100. The condition number of Psi is the number of classes: from 0.3, 43 classes
    of 42 features keep an error of up to 3e-3, 20 of 19 seldom 3e-5 (3 of 75 starts), 100 classes
    1e-4; 1000 classes keep 3e-2, and 1e-6 only from deviations up to 1e-3.
    Near the UPD set the result is that of :class:`SimplexUPD` up to the square of the deviation.
    Cost: ``steps * LBFGS_INNER_STEPS`` gradients of Psi, and their backward pass.
    Source: the paper, section 4.2 and appendix.
    """

    spare_features = 1
    polishing_tolerance = 1e-2
    """A fixed number of steps leaves what they have not reached: 4e-3 of 100 classes at the harsh
    rate 0.1."""

    def __init__(self, features: int, classes: int, steps: int = LBFGS_STEPS) -> None:
        super().__init__(features, classes)
        self.steps = require_whole("steps", steps, 1, "use 3")

    def settings(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def making_cost(self) -> float:
        gradients = self.steps * LBFGS_INNER_STEPS  # two products each
        return 2.0 * gradients * self.raw.shape[0] * self.raw.numel()

    def weight(self) -> Float[Tensor, "c m"]:
        return lbfgs_projection(self.raw, self.steps * LBFGS_INNER_STEPS)


def psi_gradient(rows: Float[Tensor, "c m"]) -> Float[Tensor, "c m"]:
    """Gradient of Psi divided by the number of classes, which makes a unit step sensible.

    Row h gets 4 sum_k (d_hk - 1) (U_h - U_k) with d the squared distances.
    """
    classes = rows.shape[0]
    weights = squared_distances(rows) - 1.0
    weights = weights - torch.diag(weights.diagonal())
    return 4.0 / classes * (weights.sum(1, keepdim=True) * rows - weights @ rows)


def lbfgs_projection(start: Float[Tensor, "c m"], steps: int) -> Float[Tensor, "c m"]:
    """Unrolled L-BFGS on Psi with a unit step and a memory of ``LBFGS_MEMORY`` pairs.

    Computed in float64 and returned in the dtype of ``start``. No line search and no
    data-dependent loop: pairs of too small curvature get weight zero, and so do all steps after
    the gradient has reached ``LBFGS_FLOOR``. Without that stop the pairs are differences of
    rounding errors: the point leaves the minimum, and the gradient through the unrolled steps
    grows without bound.
    """
    point = start.double()
    gradient = psi_gradient(point)
    # Along the rows of a simplex of squared edge d, Psi / C has curvature 12 d - 4: a longer first
    # step would jump across the origin and land on the mirrored simplex.
    curvature = (12.0 * squared_distances(point).max() - 4.0).clamp_min(8.0)
    steps_taken: list[Tensor] = []
    changes: list[Tensor] = []
    direction = -gradient / curvature
    for _ in range(steps):
        going = gradient.detach().abs().max() > LBFGS_FLOOR
        following = point + torch.where(going, direction, 0.0)
        new_gradient = psi_gradient(following)
        steps_taken = [*steps_taken, following - point][-LBFGS_MEMORY:]
        changes = [*changes, new_gradient - gradient][-LBFGS_MEMORY:]
        point, gradient = following, new_gradient
        direction = -_two_loop(gradient, steps_taken, changes, 1.0 / curvature)
    return point.to(start.dtype)


def _two_loop(
    gradient: Tensor, steps: list[Tensor], changes: list[Tensor], first_scale: Tensor
) -> Tensor:
    """Nocedal's two-loop recursion: the inverse Hessian estimate times the gradient."""
    curvatures = [(s * y).sum() for s, y in zip(steps, changes, strict=True)]
    usable = [
        c.detach() > LBFGS_CURVATURE * s.detach().norm() * y.detach().norm()
        for c, s, y in zip(curvatures, steps, changes, strict=True)
    ]
    # Where both branches meet a zero, the one not taken must not divide by it either: its
    # derivative would be 0 * inf.
    safe = [torch.where(use, c, 1.0) for use, c in zip(usable, curvatures, strict=True)]
    rhos = [torch.where(use, 1.0 / c, 0.0) for use, c in zip(usable, safe, strict=True)]
    alphas = []
    q = gradient
    for s, y, rho in zip(reversed(steps), reversed(changes), reversed(rhos), strict=True):
        alpha = rho * (s * q).sum()
        alphas.append(alpha)
        q = q - alpha * y
    squared = torch.where(usable[-1], changes[-1].square().sum(), 1.0)
    q = torch.where(usable[-1], safe[-1] / squared, first_scale) * q
    for s, y, rho, alpha in zip(steps, changes, rhos, reversed(alphas), strict=True):
        q = q + s * (alpha - rho * (y * q).sum())
    return q
