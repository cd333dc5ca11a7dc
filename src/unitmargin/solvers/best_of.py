"""The closest of several results for the same samples."""

import torch

from unitmargin.solvers.result import MapResult


def best_of(*results: MapResult) -> MapResult:
    """For every sample the shortest confirmed perturbation of several solvers.

    Shapes: as one :class:`MapResult`; all results must belong to the same samples. The calls of
    all results are added. Guarantee: no distance exceeds that of any result.

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
