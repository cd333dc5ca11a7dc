"""What every solver returns: one :class:`MapResult` for a batch, and the closest of several."""

from dataclasses import dataclass
from enum import IntEnum

import torch
from jaxtyping import Float64, Int64
from torch import Tensor


class Status(IntEnum):
    """How the search ended for one sample.

    Attributes:
        ALREADY_MISCLASSIFIED: the margin of the given label is not positive at the input itself.
        FOUND: a point of another class was found and confirmed in float64.
        FAILED: no point of another class was confirmed; this says nothing about the distance.
    """

    ALREADY_MISCLASSIFIED = 0
    FOUND = 1
    FAILED = 2


@dataclass(frozen=True, eq=False)
class MapResult:
    """Upper bounds of the :func:`minimal_perturbation`, one entry a sample.

    Attributes:
        point: the adversarial point, in float64 and in the shape of the input; the input itself
            where it is already misclassified; NaN where the search failed.
        distance: l2 norm of ``point - x`` in the units of the input, float64; 0 where already
            misclassified; infinite where the search failed.
        status: a :class:`Status` a sample, int64.
        n_forward: forward passes spent on the sample, the final confirmation included.
        n_backward: backward passes spent on the sample.

    Guarantee: at every point with status FOUND a float64 forward pass gave the label a margin of
    at most ``-tau``, ``tau = 1e-10 max(1, max_j |f_j(x)|)``, and the point lies in the box. So
    ``distance`` is never below the true value by more than float64 rounding, and above it by what
    a margin of tau needs: 1e-4 of a distance of 1e-6 where the margin's gradient has norm 1. Choose
    units of the input in which distances are longer.
    """

    point: Float64[Tensor, "batch *shape"]
    distance: Float64[Tensor, " batch"]
    status: Int64[Tensor, " batch"]
    n_forward: Int64[Tensor, " batch"]
    n_backward: Int64[Tensor, " batch"]


def best_of(*results: MapResult) -> MapResult:
    """For every sample the shortest confirmed perturbation of several solvers.

    Shapes: as one :class:`MapResult`; all results must belong to the same samples. The calls of
    all results are added.
    Guarantee: no distance exceeds that of any result.

    Raises:
        ValueError: no result, or results of different shapes.

    Example:
        >>> from unitmargin.solvers import minimal_perturbation
        >>> x, label = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
        >>> solvers = ("deepfool", "sphere_tracing")
        >>> found = [minimal_perturbation(torch.nn.Identity(), x, label, name) for name in solvers]
        >>> abs(float(best_of(*found).distance) - 2**0.5) < 1e-5
        True
    """
    if not results:
        raise ValueError("results must hold at least one MapResult, got none; pass one a solver")
    shapes = {tuple(result.point.shape) for result in results}
    if len(shapes) > 1:
        raise ValueError(
            f"results must belong to the same samples, got points of shapes {sorted(shapes)}; run "
            "every solver on the same batch"
        )
    every = {name: torch.stack([vars(one)[name] for one in results]) for name in vars(results[0])}
    chosen = every["distance"].argmin(0)
    rows = torch.arange(len(chosen), device=chosen.device)
    calls = {name: every[name].sum(0) for name in ("n_forward", "n_backward")}
    return MapResult(**{name: values[chosen, rows] for name, values in every.items()} | calls)
