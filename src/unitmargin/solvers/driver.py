"""What happens around every solver: arguments, batches, the count of calls, the last word."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, get_args, get_origin

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from unitmargin.data import ENCODING
from unitmargin.foundation.choice import require_choice, require_kind
from unitmargin.foundation.numbers import (
    Numbers,
    as_labels,
    as_tensor,
    require_amount,
    require_encoded,
    require_floating,
    require_interval,
    require_share,
    require_whole,
)
from unitmargin.frozen import FrozenNetwork
from unitmargin.layers.margin import margins
from unitmargin.solvers.evaluation import Evaluator, prepare, require_logits
from unitmargin.solvers.geometry import Box, Positive, Rows, Share, Vectors, column
from unitmargin.solvers.landing import land
from unitmargin.solvers.problem import Problem
from unitmargin.solvers.result import MapResult, Status

Solver = Callable[..., None]
"""``solver(problem, **options)``: evaluates points of the problem until its budget is spent."""

RESOLUTION = 100.0
"""Rounding of the logits of a deep network, in units in the last place of the largest of them."""

GivenBox = tuple[float, float] | tuple[Numbers, Numbers]
"""Lowest and highest value: for all entries of a point, or for each."""


def search(
    solver: Solver,
    model: nn.Module,
    x: Numbers,
    labels: Numbers,
    box: GivenBox | None,
    refinements: int,
    batch_size: int,
    progress: bool,
    options: Mapping[str, Any],
) -> MapResult:
    """Run one solver over all samples, batch by batch. See :func:`minimal_perturbation`."""
    if isinstance(model, FrozenNetwork):
        require_encoded("x", x, model.facts.get(ENCODING))
    inputs, classes = as_tensor("x", x), as_labels("labels", labels)
    bounds = require_arguments(model, inputs, classes, box, refinements, batch_size)
    require_options(solver, options)
    with (
        torch.inference_mode(False),
        torch.autocast(inputs.device.type, enabled=False),
        tqdm(disable=None if progress else True, unit=" evaluations") as bar,
    ):
        start = inputs.to(torch.float64, copy=True)
        classes = classes.to(inputs.device, copy=True)
        evaluator, run = prepare(model, inputs), partial(solver, **options)
        parts = []
        for first in range(0, max(len(start), 1), batch_size):
            bar.set_description(f"{first} of {len(start)} samples")
            rows = slice(first, first + batch_size)
            points, given = start[rows].flatten(1), classes[rows]
            parts.append(_solve(run, evaluator, points, given, bounds, refinements, bar.update))
    found = {name: torch.cat([vars(part)[name] for part in parts]) for name in vars(parts[0])}
    return MapResult(**found | {"point": found["point"].reshape(start.shape)})


def _solve(
    solver: Solver,
    evaluator: Evaluator,
    start: Vectors,
    labels: Rows,
    box: Box | None,
    refinements: int,
    tick: Callable[[int], object],
) -> MapResult:
    """One batch: settle what needs no search, search the rest, confirm in float64."""
    with torch.no_grad():
        logits = evaluator.logits(start, wide=True)
        require_logits(evaluator, start, logits, labels)
    margin, finite = margins(logits, labels), torch.isfinite(logits).all(1)
    already = finite & (margin <= 0.0)
    searched = (finite & (margin > 0.0)).nonzero().squeeze(1)

    def problem_of(rows: Rows, evaluator: Evaluator) -> Problem:
        return Problem(evaluator, start[rows], labels[rows], logits[rows], box, tick)

    problem = problem_of(searched, evaluator)
    lost = _run(solver, problem, refinements)
    if len(lost) and evaluator.native is not evaluator.wide:
        wide = problem_of(searched[lost], evaluator.in_float64())
        _run(solver, wide, refinements)
        problem.take(lost, wide)
    point = torch.where(column(already), start, torch.nan)
    distance = torch.where(already, 0.0, torch.full_like(margin, torch.inf))
    status = torch.where(already, int(Status.ALREADY_MISCLASSIFIED), int(Status.FAILED))
    best = torch.isfinite(problem.best_distance)
    found = searched[best]
    point[found], distance[found] = problem.best_point[best], problem.best_distance[best]
    status[found] = int(Status.FOUND)
    n_forward, n_backward = torch.ones_like(status), torch.zeros_like(status)
    n_forward[searched] += problem.n_forward
    n_backward[searched] += problem.n_backward
    return MapResult(point, distance, status, n_forward, n_backward)


def _run(solver: Solver, problem: Problem, refinements: int) -> Rows:
    """Search and confirm; the samples without a confirmed point that the native precision lost:
    it crossed somewhere else than float64 does, or does not resolve the margin at the start, or not
    hold the logits there."""
    if not len(problem):
        return problem.all_rows()
    solver(problem)
    crossed = torch.isfinite(problem.best_distance)
    land(problem, refinements)
    resolved = RESOLUTION * torch.finfo(problem.evaluator.dtype).eps * problem.scale
    unsure = crossed | (problem.margins.min(1).values <= resolved)
    missed = (~crossed).nonzero().squeeze(1)
    unsure[missed] |= problem.overflow(missed)
    return (unsure & torch.isinf(problem.best_distance)).nonzero().squeeze(1)


def own_options(solver: Solver) -> Mapping[str, inspect.Parameter]:
    """The options of a solver, with types and defaults, but for those that it has settled."""
    options = dict(list(inspect.signature(solver).parameters.items())[1:])
    return {name: one for name, one in options.items() if name not in settled(solver)}


def settled(solver: Solver) -> Mapping[str, Any]:
    """The options of another solver that one sets for good."""
    return solver.keywords if isinstance(solver, partial) else {}


def require_options(solver: Solver, options: Mapping[str, Any]) -> None:
    """Raise for an unknown option or choice, a count below 1, a number negative or not finite, a
    share of 1 or more, and a number of 0 by which nothing would move."""
    known = own_options(solver)
    step = "leave it out for the default"
    for name, value in options.items():
        if name not in known:
            raise ValueError(
                f"options must be among {', '.join(known) or 'none'}, got {name!r}; drop it or "
                "choose another solver"
            )
        kind = known[name].annotation
        if kind is Share:
            require_share(name, value, step)
        elif kind is Positive:
            if require_amount(name, value, step) == 0.0:
                raise ValueError(f"{name} must be above 0, got {value}; {step}")
        elif kind is int:
            require_whole(name, value, 1, step)
        elif kind is float or (kind == float | None and value is not None):
            require_amount(name, value, step)
        elif get_origin(kind) is Literal:
            require_choice(name, value, get_args(kind))


def require_arguments(
    model: nn.Module,
    x: Tensor,
    labels: Tensor,
    box: GivenBox | None,
    refinements: int,
    batch_size: int,
) -> Box | None:
    """The box of points in rows; raises unless all arguments of :func:`search` fit together."""
    require_kind("model", model, nn.Module, "wrap a function in a torch.nn.Module")
    if isinstance(model, FrozenNetwork):
        model.require_input(x)
    require_samples(x, labels)
    require_whole("refinements", refinements, 0, "use 0 to keep the solver's own points")
    require_whole("batch_size", batch_size, 1, "leave it out for the default")
    devices = {tensor.device for tensor in (*model.parameters(), *model.buffers())}
    if devices and x.device not in devices:
        raise ValueError(
            f"x must be on the model's device, got {x.device} and {min(map(str, devices))}; move "
            "one of them"
        )
    return None if box is None else require_box(box, x)


def require_samples(x: Tensor, labels: Tensor) -> None:
    """Raise unless x is a finite floating-point batch and labels are its classes."""
    require_floating("x", x, "convert it and scale it to the units of the training")
    if x.ndim < 2:
        raise ValueError(
            f"x must have shape (batch, *shape), got {tuple(x.shape)}; add the batch axis: x[None]"
        )
    finite = torch.isfinite(x).flatten(1).all(1)
    if not bool(finite.all()):
        first = int(finite.logical_not().nonzero()[0])
        raise ValueError(
            f"x must be finite, got NaN or infinite entries in sample {first}; clean the inputs"
        )
    if labels.shape != x.shape[:1]:
        raise ValueError(
            f"labels must be one a sample, shape ({len(x)},), got {tuple(labels.shape)}; pass the "
            "number of the class of every sample"
        )
    if bool((labels < 0).any()):
        raise ValueError(
            f"labels must be >= 0, got {int(labels.min())}; drop the samples without a label"
        )


def require_box(box: GivenBox, x: Tensor) -> Box:
    """The box as two tensors, or an error that names the smallest and largest entry of x."""
    arrays = isinstance(box, tuple | list) and [isinstance(end, Tensor | np.ndarray) for end in box]
    if arrays == [True, True]:
        low, high = _bounds_of_entries(box, x)
        within = "between its ends"
    else:
        ends = require_interval("box", box, "pass (0, 1) for pixels, or leave it out")
        low, high = (torch.tensor(end, dtype=torch.float64, device=x.device) for end in ends)
        within = f"[{ends[0]}, {ends[1]}]"
    if len(x) and bool(((x < low) | (x > high)).any()):
        raise ValueError(
            f"x must lie in the box {within}, got entries from {float(x.min())} to "
            f"{float(x.max())}; pass box=None, or the box in the units of x"
        )
    return (low.flatten(), high.flatten()) if low.ndim else (low, high)


def _bounds_of_entries(box: GivenBox, x: Tensor) -> Box:
    """Both ends in the shape of one input."""
    shape, step = tuple(x.shape[1:]), "pass two arrays of the shape of one input"
    ends = [as_tensor("box", end) for end in box]
    shapes = [tuple(end.shape) for end in ends]
    if shapes != [shape, shape]:
        found = " and ".join(map(str, shapes))
        raise ValueError(f"box must hold two arrays of shape {shape}, got {found}; {step}")
    low, high = (end.to(x.device, torch.float64) for end in ends)
    wrong = (low < high).logical_not().flatten()
    if bool(wrong.any()):
        entry = int(wrong.nonzero()[0])
        got = " and ".join(f"{float(end.flatten()[entry]):g}" for end in (low, high))
        raise ValueError(
            "box must be (low, high) with low < high in every entry, got "
            f"{got} in entry {entry}; {step}"
        )
    return low, high
