r"""Tightness: certified radii against the minimal adversarial perturbations that solvers find.

The paper's figure of merit is the ratio LB/MAP: the certified radius of a sample divided by the
distance of the closest point with another label. A solver gives an upper bound of that distance,
so the ratio is a lower bound of the true one.
"""

import inspect
import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from unitmargin.certificates.boundary import Mask
from unitmargin.certificates.spaces import INPUT, Box, Space
from unitmargin.frozen import FrozenNetwork
from unitmargin.solvers import SOLVERS, MapResult, Status, minimal_perturbation

Values = Float64[Tensor, " batch"]
Integers = Int64[Tensor, " batch"]

CONFIRM_BATCH = 512
"""Points a float64 forward pass when labels are decided once more: bounds its memory."""

SEARCHED = 1024
"""Samples a call of a solver: bounds the memory of their points, two batches of a search."""

NO_BOX = "none"


@dataclass(frozen=True, eq=False)
class Search:
    """The answers of one solver for some test samples; all tensors have one entry a sample.

    Attributes:
        solver: a name of ``SOLVERS``.
        settings: its options, such as ``steps=30``, separated by blanks.
        box: bounds of every entry of an input, or None.
        index: positions in the test data.
        label: true labels.
        radius: certified radius of the prediction (the paper's LB).
        distance: of the closest point found, 0 for a sample that is misclassified itself, infinite
            where the search failed.
        status: a :class:`Status` a sample.
        n_forward, n_backward: passes spent on the sample.
        space: in which radius and distance are measured, see :class:`Space`.
    """

    solver: str
    settings: str
    box: Box | None
    index: Integers
    label: Integers
    radius: Values
    distance: Values
    status: Integers
    n_forward: Integers
    n_backward: Integers
    space: str = INPUT

    @property
    def right(self) -> Mask:
        """Samples that are classified as labelled: only these have a distance to the boundary."""
        return self.status != int(Status.ALREADY_MISCLASSIFIED)

    @property
    def found(self) -> Mask:
        """Right samples for which a point of another class was found: the paper's #N."""
        return self.status == int(Status.FOUND)

    def inside(self) -> Mask:
        """Samples whose certificate is contradicted: the point found lies inside the radius."""
        return self.found & (self.distance < self.radius)

    def changed(self) -> list[str]:
        """The settings that are not the defaults of the solver."""
        usual = describe_settings(self.solver).split() if self.solver in SOLVERS else []
        return [setting for setting in self.settings.split() if usual and setting not in usual]

    def __str__(self) -> str:
        changed = self.changed()
        where = place_name(self.box, self.space)
        return " ".join([self.solver, where, *(["with"] if changed else []), *changed])


@dataclass(frozen=True)
class Tightness:
    """Statistics of LB/MAP over the right samples for which a point was found.

    Attributes:
        mean, spread, smallest: of the ratio; spread is the standard deviation. NaN without samples.
        n: number of samples in them (the paper's #N).
        right: number of samples classified as labelled.
        success: ``n / right``; NaN without right samples.
        mean_radius, mean_distance: of the same samples.
        n_forward, n_backward: mean passes spent on a right sample.
    """

    mean: float
    spread: float
    smallest: float
    n: int
    right: int
    success: float
    mean_radius: float
    mean_distance: float
    n_forward: float
    n_backward: float


def tightness(search: Search) -> Tightness:
    """Statistics of LB/MAP of one search.

    Source: the paper, section 5.2, the LB/MAP tables.
    """
    radius, distance = search.radius[search.found], search.distance[search.found]
    ratio = radius / distance
    n, right = len(ratio), int(search.right.sum())
    return Tightness(
        mean=float(ratio.mean()),
        spread=float(ratio.std(correction=0)) if n else math.nan,
        smallest=float(ratio.min()) if n else math.nan,
        n=n,
        right=right,
        success=n / right if right else math.nan,
        mean_radius=float(radius.mean()),
        mean_distance=float(distance.mean()),
        n_forward=float(search.n_forward[search.right].double().mean()),
        n_backward=float(search.n_backward[search.right].double().mean()),
    )


def describe(search: Search) -> dict[str, Any]:
    """What was searched, how, and the statistics: JSON values, None for those that are not finite.

    Example:
        >>> nothing = torch.zeros(0, dtype=torch.int64)
        >>> far = nothing.double()
        >>> empty = Search("fmn", "", None, nothing, nothing, far, far, *3 * [nothing])
        >>> describe(empty)["box"], describe(empty)["mean"]
        ('none', None)
    """
    figures = asdict(tightness(search))
    return {
        "solver": search.solver,
        "settings": search.settings,
        "box": box_name(search.box),
        "space": search.space,
        "samples": len(search.index),
        **{name: value if math.isfinite(value) else None for name, value in figures.items()},
    }


def search_boundary(
    space: Space,
    inputs: Tensor,
    labels: Integers,
    index: Integers,
    solver: str,
    box: Box | None,
    radius: Values | None = None,
    **options: Any,
) -> Search:
    """Search the closest adversarial point of every sample with one solver and its options.

    Inputs, their certified radii and box are those of the network; radii and distances of the
    answer are measured in the space. Without radii the inputs are certified here.
    Distances and labels of the points are computed once more, in float64 and from the stored
    points; a point that keeps the true label or leaves the box counts as a failed search.

    Cost: that of the solver, and one float64 forward pass for each point; without radii, that of
    the certificates.
    """
    parts, bounds = [], space.bounds(box)
    for start in range(0, max(len(inputs), 1), SEARCHED):
        rows = slice(start, start + SEARCHED)
        points, own = space.points(inputs[rows]), labels[rows]
        found = minimal_perturbation(space.frozen, points, own, solver, bounds, **options)
        distance, status = confirm(space.frozen, points, own, bounds, found)
        calls = found.n_forward, found.n_backward
        own_radius = None if radius is None else radius[rows]
        parts.append((space.radii(inputs[rows], own_radius), distance, status, *calls))
    radius, distance, status, n_forward, n_backward = map(torch.cat, zip(*parts, strict=True))
    return Search(
        solver=solver,
        settings=describe_settings(solver, **options),
        box=box,
        index=index,
        label=labels,
        radius=radius,
        distance=distance,
        status=status,
        n_forward=n_forward,
        n_backward=n_backward,
        space=space.name,
    )


def confirm(
    frozen: FrozenNetwork,
    points: Tensor,
    labels: Integers,
    box: tuple[Tensor, Tensor] | None,
    found: MapResult,
) -> tuple[Values, Integers]:
    """Distance and status of a solver's points, decided by the points alone."""
    distance, status = found.distance.clone(), found.status.clone()
    network, starts = frozen.in_float64(), points.double()
    for rows in (status == int(Status.FOUND)).nonzero().squeeze(1).split(CONFIRM_BATCH):
        ends = found.point[rows]
        with torch.no_grad():
            valid = network(ends).argmax(1) != labels[rows]
        if box is not None:
            valid = valid & ((ends >= box[0]) & (ends <= box[1])).flatten(1).all(1)
        length = (ends - starts[rows]).flatten(1).norm(dim=1)
        distance[rows] = torch.where(valid, length, torch.inf)
        status[rows] = torch.where(valid, int(Status.FOUND), int(Status.FAILED))
    return distance, status


def describe_settings(solver: str, **options: Any) -> str:
    """The options of a solver as text, the defaults of those that are not given.

    Example:
        >>> describe_settings("deepfool", steps=9)
        'steps=9 n_candidates=10 overshoot=0.02 refinements=20'
    """
    shared = inspect.signature(minimal_perturbation).parameters["refinements"]
    own = [*inspect.signature(SOLVERS[solver]).parameters.values()][1:]
    known = (*own, shared)
    return " ".join(f"{option.name}={options.get(option.name, option.default)}" for option in known)


def box_name(box: Box | None) -> str:
    """A box as it stands in files and reports.

    Example:
        >>> box_name((0.0, 1.0)), box_name(None)
        ('[0, 1]', 'none')
    """
    return NO_BOX if box is None else f"[{box[0]:g}, {box[1]:g}]"


def place_name(box: Box | None, space: str = INPUT) -> str:
    """A box and a space in words.

    Example:
        >>> place_name(None), place_name((0.0, 1.0), "normalised")
        ('without box', 'in [0, 1], normalised')
    """
    where = "without box" if box is None else f"in {box_name(box)}"
    return where if space == INPUT else f"{where}, {space}"
