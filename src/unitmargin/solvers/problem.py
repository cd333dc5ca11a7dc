"""The search space of one batch: evaluations, their count, and the best point found so far."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from unitmargin.layers.margin import pair_margins
from unitmargin.solvers.evaluation import Evaluator
from unitmargin.solvers.geometry import Box, Rows, Values, Vectors, clamp, norm

MARGIN_TOLERANCE = 1e-10
"""Margin, in units of max(1, largest logit), beyond which a point counts as adversarial: far above
float64 rounding of a few dozen layers, far below any distance of interest."""

Objective = Callable[[Tensor, Tensor], Tensor]
"""From logits and the rows they belong to, to one value a row."""


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
        tolerance: the tau of :class:`MapResult`.
        best_point, best_distance, best_margin: best so far; infinite distance where nothing was
            found.
        n_forward, n_backward: evaluations so far.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        start: Float64[Tensor, "batch features"],
        labels: Int64[Tensor, " batch"],
        logits: Float64[Tensor, "batch classes"],
        box: Box | None,
        tick: Callable[[], object] = lambda: None,
    ) -> None:
        self.evaluator, self.box, self.tick = evaluator, box, tick
        self.start, self.labels = start, labels
        self.margins = pair_margins(logits, labels)
        self.tolerance = margin_tolerance(logits)
        self.lower_bounds = self._certified()
        self.best_point = torch.full_like(start, torch.nan)
        self.best_distance = torch.full_like(self.tolerance, torch.inf)
        self.best_margin = torch.full_like(self.tolerance, torch.nan)
        self.n_forward = torch.zeros_like(labels)
        self.n_backward = torch.zeros_like(labels)

    def __len__(self) -> int:
        return len(self.start)

    def all_rows(self) -> Int64[Tensor, " batch"]:
        """Indices of all samples."""
        return torch.arange(len(self), device=self.start.device)

    def rivals(self) -> Int64[Tensor, "batch others"]:
        """The other classes of each sample, by certified distance, then by margin at the start."""
        by_margin = self.margins.argsort(dim=1, stable=True)
        bounds = self.lower_bounds.gather(1, by_margin)
        order = bounds.argsort(dim=1, stable=True)
        return by_margin.gather(1, order)[:, :-1]

    def clamp(self, points: Vectors) -> Vectors:
        """Closest points of the box."""
        return clamp(points, self.box)

    def margin(
        self, points: Vectors, rows: Rows, classes: Rows | None = None, wide: bool = False
    ) -> Values:
        """Margin of the label against the given classes, or against all; ``wide``: in float64."""
        points = points.detach()
        with torch.no_grad():
            logits = self.evaluator.logits(points, wide)
            margins = pair_margins(logits, self.labels[rows])
        self._count(self.n_forward, rows)
        self._record(points, rows, margins.min(1).values)
        return select(margins, classes)

    def slope(
        self, points: Vectors, rows: Rows, classes: Rows | None = None, wide: bool = False
    ) -> tuple[Values, Vectors]:
        """The margin against the given classes, or against all, and its gradient."""
        _, value, gradient = self.descend(
            points,
            rows,
            lambda logits, rows: select(pair_margins(logits, self.labels[rows]), classes),
            wide,
        )
        return value, gradient

    def descend(
        self, points: Vectors, rows: Rows, objective: Objective, wide: bool = False
    ) -> tuple[Values, Values, Vectors]:
        """Margin against all classes, value of the objective, and the objective's gradient.

        Gradient entries that are not finite become 0.
        """
        probe = points.detach().clone().requires_grad_(True)
        with torch.enable_grad():
            logits = self.evaluator.logits(probe, wide)
            value = objective(logits, rows)
            (gradient,) = torch.autograd.grad(value.sum(), probe, allow_unused=True)
        margin = pair_margins(logits.detach(), self.labels[rows]).min(1).values
        self._count(self.n_forward, rows)
        self._count(self.n_backward, rows)
        self._record(points, rows, margin)
        if gradient is None:
            gradient = torch.zeros_like(points)
        return margin, value.detach(), gradient.nan_to_num(0.0, 0.0, 0.0)

    def pair_slopes(
        self, points: Vectors, rows: Rows, classes: Int64[Tensor, "rows others"]
    ) -> tuple[Float64[Tensor, "rows others"], Float64[Tensor, "rows others features"]]:
        """Margins against several classes and their gradients, one backward pass each."""
        probe = points.detach().clone().requires_grad_(True)
        gradients = []
        with torch.enable_grad():
            margins = pair_margins(self.evaluator.logits(probe), self.labels[rows])
            values = margins.gather(1, classes)
            for column in values.unbind(1):
                (gradient,) = torch.autograd.grad(column.sum(), probe, retain_graph=True)
                gradients.append(gradient.nan_to_num(0.0, 0.0, 0.0))
        self._count(self.n_forward, rows)
        self._count(self.n_backward, rows, len(gradients))
        self._record(points, rows, margins.detach().min(1).values)
        return values.detach(), torch.stack(gradients, dim=1)

    def _certified(self) -> Float64[Tensor, "batch classes"]:
        constants = self.evaluator.constants
        if constants is None:
            zeros = torch.zeros_like(self.margins)
            return zeros.scatter(1, self.labels[:, None], torch.inf)
        return (self.margins / constants[self.labels]).scatter(1, self.labels[:, None], torch.inf)

    def _count(self, counter: Tensor, rows: Tensor, times: int = 1) -> None:
        counter.index_add_(0, rows, torch.full_like(rows, times))
        self.tick()

    def _record(self, points: Tensor, rows: Tensor, margins: Tensor) -> None:
        points = points.detach()
        distances = norm(points - self.start[rows]).squeeze(1)
        crossed = (margins <= -self.tolerance[rows]) & torch.isfinite(distances)
        distances = torch.where(crossed, distances, torch.inf)
        best = self.best_distance.scatter_reduce(0, rows, distances, "amin")
        # Where a row occurs several times, only its closest point may win.
        won = (distances < self.best_distance[rows]) & (distances == best[rows])
        self.best_distance = best
        self.best_point[rows[won]] = points[won]
        self.best_margin[rows[won]] = margins[won]


def select(margins: Float64[Tensor, "rows classes"], classes: Rows | None) -> Values:
    """The margin against one class a row, or the smallest one; ties give one gradient, not two."""
    chosen = margins.detach().argmin(1) if classes is None else classes
    return margins.gather(1, chosen[:, None]).squeeze(1)


def margin_tolerance(logits: Float64[Tensor, "rows classes"]) -> Values:
    """The tau of :class:`MapResult`."""
    return MARGIN_TOLERANCE * logits.abs().max(1).values.clamp_min(1.0)


def outside_entries(points: Vectors, box: Box | None) -> Bool[Tensor, "rows features"]:
    """Which entries leave the box."""
    if box is None:
        return torch.zeros_like(points, dtype=torch.bool)
    return (points < box[0]) | (points > box[1])
