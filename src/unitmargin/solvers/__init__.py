"""Family: ways to compute the minimal adversarial perturbation (the paper's problem MAP).

A new solver is one file with a function ``solver(problem, **options)`` and one line here. It only
decides where the classifier is evaluated: :class:`Problem` keeps the best point, and what
arguments must be, counts and the final float64 confirmation are shared.
"""

from functools import partial
from typing import Any

from torch import nn

from unitmargin.foundation.choice import choose
from unitmargin.foundation.numbers import Numbers
from unitmargin.solvers.alma import alma
from unitmargin.solvers.carlini_wagner import carlini_wagner
from unitmargin.solvers.closed_form import closed_form
from unitmargin.solvers.ddn import ddn
from unitmargin.solvers.deepfool import deepfool
from unitmargin.solvers.driver import GivenBox, Solver, search
from unitmargin.solvers.fmn import fmn
from unitmargin.solvers.iterative_penalty import iterative_penalty
from unitmargin.solvers.outer_boundary import closest_boundary, fast_outer_boundary
from unitmargin.solvers.result import MapResult, Status, best_of
from unitmargin.solvers.sphere_tracing import sphere_tracing

__all__ = [
    "SOLVERS", "MapResult", "Solver", "Status", "best_of", "bracket", "choice",
    "minimal_perturbation",
]  # fmt: skip

SOLVERS: dict[str, Solver] = {
    "sphere_tracing": sphere_tracing,
    "iterative_penalty": iterative_penalty,
    "ddn": ddn,
    "margin_ddn": partial(ddn, loss="margin"),
    "deepfool": deepfool,
    "closest_boundary": closest_boundary,
    "fast_outer_boundary": fast_outer_boundary,
    "fmn": fmn,
    "alma": alma,
    "carlini_wagner": carlini_wagner,
    "closed_form": closed_form,
}


def minimal_perturbation(
    model: nn.Module,
    x: Numbers,
    labels: Numbers,
    solver: str = "sphere_tracing",
    box: GivenBox | None = None,
    *,
    refinements: int = 20,
    batch_size: int = 512,
    progress: bool = False,
    **options: Any,
) -> MapResult:
    r"""Upper bound of the minimal adversarial perturbation of every sample, by one solver.

    .. math:: d(x) = \inf \{ \|p - x\|_2 : f_l(p) \le \max_{j \ne l} f_j(p), \; p \in \text{box} \}

    Args:
        model: any classifier that returns logits ``(batch, classes)``, in evaluation mode from the
            call on; for a :class:`FrozenNetwork` certified distances speed the search up. The
            search runs in the model's precision, and once more in float64 for samples that it loses
            there; the last word is a float64 evaluation of the same weights (``in_float64()`` of a
            frozen network, ``copy.deepcopy(model).double()`` otherwise). The model itself is never
            written to.
        x: inputs ``(batch, *shape)``, a tensor, NumPy array or data frame of any floating dtype, on
            the model's device; an empty batch gives an empty result.
        labels: one class index a sample, ``(batch,)``.
        solver: a name of ``SOLVERS``.
        box: lowest and highest value allowed for every entry of a point, two numbers or two arrays
            of the shape of one input, or None.
        refinements: float64 evaluations, at most, that move the best point back to the boundary on
            its segment from x; 0 keeps the solver's own points.
        batch_size: samples searched at once; results depend on it by rounding only.
        progress: show a bar that counts model evaluations.
        options: keyword arguments of the solver: those of ``SOLVERS[solver]`` but its first, which
            ``help`` lists.

    Returns:
        See :class:`MapResult` for what is guaranteed: every found point was confirmed in float64,
        and a sample without one has infinite distance and status FAILED.

    Raises:
        TypeError: a model, inputs, labels, box or number of another kind.
        ValueError: unknown solver or option, inputs that are not finite or outside the box, labels
            that do not fit, a model that returns probabilities or cannot be copied.

    Cost: that of the solver, twice where samples are searched again in float64, and 2 to 28 float64
    forward passes, usually 8.
    Source: the paper, section 2, problem MAP.

    Example:
        >>> import torch
        >>> x, label = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
        >>> found = minimal_perturbation(torch.nn.Identity(), x, label)
        >>> print(f"{abs(float(found.distance) - 2**0.5) < 1e-8}, {Status(int(found.status)).name}")
        True, FOUND
    """
    chosen = choose("solver", solver, SOLVERS)
    return search(chosen, model, x, labels, box, refinements, batch_size, progress, options)
