"""What happens around every solver: arguments, batches, the count of calls, the last word."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float64, Int64
from torch import Tensor, nn
from tqdm import tqdm

from unitmargin.layers.margin import margins
from unitmargin.solvers.evaluation import Evaluator, prepare, require_logits
from unitmargin.solvers.geometry import Box, Rows
from unitmargin.solvers.landing import land
from unitmargin.solvers.problem import Problem
from unitmargin.solvers.result import MapResult, Status

Solver = Callable[..., None]
"""``solver(problem, **options)``: evaluates points of the problem until its budget is spent."""


def search(
    solver: Solver,
    model: nn.Module,
    x: Tensor,
    labels: Tensor,
    box: Box | None,
    refinements: int,
    batch_size: int,
    progress: bool,
    options: Mapping[str, Any],
) -> MapResult:
    """Run one solver over all samples, batch by batch. See :func:`minimal_perturbation`."""
    box = require_arguments(model, x, labels, box, refinements, batch_size)
    require_options(solver, options)
    with (
        torch.inference_mode(False),
        torch.autocast(x.device.type, enabled=False),
        tqdm(disable=not progress, unit=" evaluations") as bar,
    ):
        start = x.detach().to(torch.float64, copy=True)
        labels = labels.detach().to(x.device, torch.int64, copy=True)
        evaluator = prepare(model, x)
        parts = []
        for first in range(0, max(len(start), 1), batch_size):
            bar.set_description(f"{first} of {len(start)} samples")
            rows = slice(first, first + batch_size)
            points = start[rows].flatten(1)
            part = _solve(
                solver, evaluator, points, labels[rows], box, refinements, bar.update, options
            )
            parts.append(part)
    found = {name: torch.cat([vars(part)[name] for part in parts]) for name in vars(parts[0])}
    return MapResult(**found | {"point": found["point"].reshape(start.shape)})


def _solve(
    solver: Solver,
    evaluator: Evaluator,
    start: Float64[Tensor, "batch features"],
    labels: Int64[Tensor, " batch"],
    box: Box | None,
    refinements: int,
    tick: Callable[[], object],
    options: Mapping[str, Any],
) -> MapResult:
    """One batch: settle what needs no search, search the rest, confirm in float64."""
    with torch.no_grad():
        logits = evaluator.logits(start, wide=True)
        require_logits(evaluator, start, logits, labels)
    margin = margins(logits, labels)
    finite = torch.isfinite(logits).all(1)
    already = finite & (margin <= 0.0)
    rows = (finite & (margin > 0.0)).nonzero().squeeze(1)
    problem = Problem(evaluator, start[rows], labels[rows], logits[rows], box, tick)
    if len(rows):
        solver(problem, **options)
        land(problem, refinements)
    return _verdict(problem, start, rows, already)


def _verdict(
    problem: Problem, start: Float64[Tensor, "batch features"], rows: Rows, already: Tensor
) -> MapResult:
    nothing = torch.full_like(start[:, :1], torch.nan)
    point = torch.where(already[:, None], start, nothing)
    distance = torch.where(already, 0.0, torch.full_like(start[:, 0], torch.inf))
    found = torch.isfinite(problem.best_distance)
    point[rows] = torch.where(found[:, None], problem.best_point, nothing[rows])
    distance[rows] = problem.best_distance
    status = torch.full_like(already, Status.FAILED, dtype=torch.int64)
    status[rows[found]] = int(Status.FOUND)
    status[already] = int(Status.ALREADY_MISCLASSIFIED)
    n_forward, n_backward = torch.ones_like(status), torch.zeros_like(status)
    n_forward[rows] += problem.n_forward
    n_backward[rows] += problem.n_backward
    return MapResult(point, distance, status, n_forward, n_backward)


def require_options(solver: Solver, options: Mapping[str, Any]) -> None:
    """Raise for an unknown option, a count below 1, a number that is negative or not finite."""
    known = list(inspect.signature(solver).parameters)[1:]
    for name, value in options.items():
        if name not in known:
            raise ValueError(
                f"options must be among {', '.join(known) or 'none'}, got {name!r}; drop it or "
                "choose another solver"
            )
        if isinstance(value, int) and value < 1:
            raise ValueError(
                f"{name} must be at least 1, got {value}; leave it out for the default"
            )
        if isinstance(value, float) and not 0.0 <= value < math.inf:
            raise ValueError(
                f"{name} must be finite and >= 0, got {value}; leave it out for the default"
            )


def require_arguments(
    model: nn.Module, x: Tensor, labels: Tensor, box: Box | None, refinements: int, batch_size: int
) -> Box | None:
    """The box as two floats; raises unless all arguments of :func:`search` fit together."""
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"model must be a torch.nn.Module, got {type(model).__name__}; wrap the function in a "
            "module"
        )
    require_samples(x, labels)
    if refinements < 0 or batch_size < 1:
        raise ValueError(
            f"refinements must be >= 0 and batch_size >= 1, got {refinements} and {batch_size}; "
            "use 0 refinements to keep the solver's own points"
        )
    devices = {tensor.device for tensor in (*model.parameters(), *model.buffers())}
    if devices and x.device not in devices:
        raise ValueError(
            f"x must be on the model's device, got {x.device} and {min(map(str, devices))}; move "
            "one of them"
        )
    return None if box is None else require_box(box, x)


def require_samples(x: Tensor, labels: Tensor) -> None:
    """Raise unless x is a finite floating-point batch and labels are its classes."""
    if not x.is_floating_point() or x.ndim < 2:
        raise ValueError(
            f"x must be a floating-point batch of inputs, got {x.dtype} of shape "
            f"{tuple(x.shape)}; convert it and add the batch axis"
        )
    if not bool(torch.isfinite(x).all()):
        raise ValueError("x must be finite, got NaN or infinite entries; clean the inputs")
    whole = not (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool)
    if labels.shape != x.shape[:1] or not whole:
        raise ValueError(
            f"labels must be {x.shape[0]} integers, got {labels.dtype} of shape "
            f"{tuple(labels.shape)}; pass one class index a sample"
        )
    if bool((labels < 0).any()):
        raise ValueError(
            f"labels must be >= 0, got {int(labels.min())}; drop the samples without a label"
        )


def require_box(box: Box, x: Tensor) -> Box:
    """The box as two floats, or an error that names the smallest and largest entry of x."""
    low, high = float(box[0]), float(box[1])
    if not low < high:
        raise ValueError(f"box must be (low, high) with low < high, got {box}; swap the bounds")
    if len(x) and (float(x.min()) < low or float(x.max()) > high):
        raise ValueError(
            f"x must lie in the box [{low}, {high}], got entries from {float(x.min())} to "
            f"{float(x.max())}; pass box=None, or the box in the units of x"
        )
    return low, high
