"""The search space of one batch: evaluations, their count, and the best point found so far."""

from collections.abc import Callable

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from unitmargin.layers.margin import pair_margins
from unitmargin.solvers.evaluation import Evaluator
from unitmargin.solvers.geometry import Box, Mask, Rows, Stack, Table, Values, Vectors, column, norm

MARGIN_TOLERANCE = 1e-10
"""Margin, in units of max(1, largest logit), beyond which a point counts as adversarial: far above
float64 rounding of a few dozen layers, far below any distance of interest."""


class Problem:
    """Correctly classified samples to be searched; all points are float64 rows of ``features``.

    Every evaluation is counted for its sample, and every evaluated point that is adversarial and
    closer than the best one so far replaces it: a solver only decides where to look. A sample may
    occur several times among the ``rows`` of one call.

    Attributes:
        start: the samples.
        labels: their labels.
        box: bounds of every entry, or None.
        margins: margin of the label against every class at the start; infinite for the label.
        lower_bounds: certified distance to every class, 0 where no constants are known.
        scale: the largest logit at the start, 1 at least.
        tolerance: the tau of :class:`MapResult`, in proportion to it.
        best_point, best_distance, best_margin: best so far; infinite distance where nothing was
            found.
        n_forward, n_backward: evaluations so far.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        start: Vectors,
        labels: Rows,
        logits: Table,
        box: Box | None,
        tick: Callable[[int], object],
    ) -> None:
        self.evaluator, self.box, self.tick = evaluator, box, tick
        self.start, self.labels = start, labels
        self.margins = pair_margins(logits, labels)
        self.scale = logits.abs().max(1).values.clamp_min(1.0)
        self.tolerance = MARGIN_TOLERANCE * self.scale
        constants = evaluator.constants
        bounds = torch.zeros_like(logits) if constants is None else self.margins / constants[labels]
        self.lower_bounds = bounds.scatter(1, column(labels), torch.inf)
        self.best_point = torch.full_like(start, torch.nan)
        self.best_distance = torch.full_like(self.tolerance, torch.inf)
        self.best_margin = torch.full_like(self.tolerance, torch.nan)
        self.n_forward, self.n_backward = torch.zeros_like(labels), torch.zeros_like(labels)

    def __len__(self) -> int:
        return len(self.start)

    def all_rows(self) -> Rows:
        """Indices of all samples."""
        return torch.arange(len(self), device=self.start.device)

    def rivals(self) -> Int64[Tensor, "rows others"]:
        """The other classes of each sample, by certified distance, then by margin at the start."""
        by_margin = self.margins.argsort(dim=1, stable=True)
        order = self.lower_bounds.gather(1, by_margin).argsort(dim=1, stable=True)
        return by_margin.gather(1, order)[:, :-1]

    def clamp(self, points: Vectors) -> Vectors:
        """Closest points of the box."""
        return points if self.box is None else points.clamp(*self.box)

    def margin(
        self, points: Vectors, rows: Rows, classes: Rows | None = None, wide: bool = False
    ) -> Values:
        """Margin of the label against the given classes, or against all; ``wide``: in float64."""
        with torch.no_grad():
            margins = pair_margins(self.evaluator.logits(points.detach(), wide), self.labels[rows])
        self._record(points, rows, margins)
        return select(margins, classes)

    def overflow(self, rows: Rows) -> Mask:
        """Whether the native precision cannot hold the logits of some samples at the start."""
        if not len(rows):
            return torch.zeros_like(rows, dtype=torch.bool)
        with torch.no_grad():
            logits = self.evaluator.logits(self.start[rows], wide=False)
        self.n_forward[rows] += 1
        return ~torch.isfinite(logits).all(1)

    def slope(
        self, points: Vectors, rows: Rows, classes: Rows | None = None, wide: bool = False
    ) -> tuple[Values, Vectors]:
        """The margin against the given classes, or against all, and its gradient."""
        margins, gradients = self.descend(
            points, rows, lambda _, every: column(select(every, classes)), wide
        )
        return select(margins, classes), gradients[:, 0]

    def pair_slopes(
        self, points: Vectors, rows: Rows, classes: Int64[Tensor, "rows columns"]
    ) -> tuple[Table, Stack]:
        """Margins against several classes and their gradients, one backward pass each."""
        margins, gradients = self.descend(points, rows, lambda _, every: every.gather(1, classes))
        return margins.gather(1, classes), gradients

    def descend(
        self,
        points: Vectors,
        rows: Rows,
        objective: Callable[[Tensor, Tensor], Tensor],
        wide: bool = False,
    ) -> tuple[Table, Float64[Tensor, "rows objectives features"]]:
        """Margins against every class, and the gradient of each column of the objective.

        ``objective`` takes logits and margins to columns, one backward pass each. Gradient entries
        that are not finite become 0.
        """
        probe = points.detach().clone().requires_grad_(True)
        with torch.enable_grad():
            logits = self.evaluator.logits(probe, wide)
            if not logits.requires_grad:
                raise ValueError(
                    "model must be differentiable by its input, got logits that do not depend on "
                    "it; remove no_grad and detach from its forward"
                )
            margins = pair_margins(logits, self.labels[rows])
            sums = objective(logits, margins).sum(0)
            gradients = [
                torch.autograd.grad(one, probe, retain_graph=True, materialize_grads=True)[0]
                for one in sums
            ]
        self._record(points, rows, margins.detach(), len(gradients))
        return margins.detach(), torch.stack(gradients, dim=1).nan_to_num(0.0, 0.0, 0.0)

    def take(self, rows: Rows, other: "Problem") -> None:
        """The results of a problem of these rows in the place of their own; calls are added."""
        self.best_point[rows], self.best_distance[rows] = other.best_point, other.best_distance
        self.best_margin[rows] = other.best_margin
        self.n_forward[rows] += other.n_forward
        self.n_backward[rows] += other.n_backward

    def _record(self, points: Vectors, rows: Rows, margins: Table, n_backward: int = 0) -> None:
        """Count the calls of each row; a closer point that crossed replaces its best one."""
        self.n_forward.index_add_(0, rows, torch.ones_like(rows))
        self.n_backward.index_add_(0, rows, torch.full_like(rows, n_backward))
        self.tick(2 if n_backward else 1)
        points, margin = points.detach(), margins.min(1).values
        distances = norm(points - self.start[rows]).squeeze(1)
        crossed = (margin <= -self.tolerance[rows]) & torch.isfinite(distances)
        distances = torch.where(crossed, distances, torch.inf)
        best = self.best_distance.scatter_reduce(0, rows, distances, "amin")
        # Where a row occurs several times, only its closest point may win.
        won = (distances < self.best_distance[rows]) & (distances == best[rows])
        self.best_distance = best
        self.best_point[rows[won]], self.best_margin[rows[won]] = points[won], margin[won]


def select(margins: Table, classes: Rows | None) -> Values:
    """The margin against one class a row, or the smallest one; ties give one gradient, not two."""
    chosen = margins.detach().argmin(1) if classes is None else classes
    return margins.gather(1, column(chosen)).squeeze(1)
