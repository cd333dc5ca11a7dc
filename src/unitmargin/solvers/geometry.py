"""Vectors in batches of rows: norms, unit vectors, and points at a given distance on a ray."""

import math
from typing import Annotated

import torch
from jaxtyping import Bool, Float64, Int64, Shaped
from torch import Tensor

Share = Annotated[float, "below 1"]
"""An option of a solver that is a part of something."""

Positive = Annotated[float, "above 0"]
"""An option of a solver that moves nothing where it is 0."""

Bound = Float64[Tensor, "*features"]
"""One number for all entries of a point, or one an entry."""

Box = tuple[Bound, Bound]
"""Lowest and highest value that the entries of a point may take."""

Vectors = Float64[Tensor, "rows features"]
"""One point or vector a row."""

Column = Float64[Tensor, "rows 1"]
"""One number a row, ready to scale vectors."""

Values = Float64[Tensor, " rows"]
"""One number a row."""

Rows = Int64[Tensor, " rows"]
"""Which samples of a problem are meant: an index, or a class, a row."""

Mask = Bool[Tensor, " rows"]
"""A yes or no a row."""

Table = Float64[Tensor, "rows columns"]
"""Several numbers a row, often one a class."""

Stack = Float64[Tensor, "rows columns features"]
"""Several vectors a row."""


def norm(vectors: Vectors) -> Column:
    """Euclidean length of each row, as a column."""
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return lengths


def unit(vectors: Vectors) -> Vectors:
    """Each row divided by its length; a zero row stays zero."""
    lengths = norm(vectors)
    return torch.where(lengths > 0, vectors / lengths, 0.0)


def inner(left: Vectors, right: Vectors) -> Column:
    """Inner product of matching rows, as a column."""
    return (left * right).sum(1, keepdim=True)


def ray_point(start: Vectors, direction: Vectors, length: Column, box: Box | None) -> Vectors:
    r"""The point :math:`p = \mathrm{clamp}(x + t u)` with :math:`\|p - x\| = r`.

    ``direction`` has unit rows. With a box the projected ray is followed as far as its length r
    needs, or to its end in a corner of the box.
    """
    point = start + ray_reach(start, direction, length, box) * direction
    return point if box is None else point.clamp(*box)


def ray_reach(start: Vectors, direction: Vectors, length: Column, box: Box | None) -> Column:
    r"""The t at which the projected ray has length r; the last one where it is never that long.

    Without a box t = r. With one,
    entry i moves until it meets the box at :math:`t = c_i`, so
    :math:`\|p - x\|^2 = \sum_{c_i \le t} (c_i u_i)^2 + t^2 \sum_{c_i > t} u_i^2`
    is increasing in t and solved exactly between two successive :math:`c_i`.
    Cost: one sort a row, no model call.
    """
    if box is None:
        return length
    low, high = box
    room = torch.where(direction > 0, high - start, start - low)
    limits, order = torch.where(direction != 0, room / direction.abs(), torch.inf).sort(dim=1)
    squares = direction.square().gather(1, order)
    moving = squares.flip(1).cumsum(1).flip(1)
    bounded = torch.isfinite(limits)
    stopped = torch.where(bounded, limits.square() * squares, 0.0).cumsum(1)
    stopped_before = torch.nn.functional.pad(stopped, (1, 0))[:, :-1]
    reached = torch.where(bounded, stopped_before + limits.square() * moving, torch.inf)
    piece = torch.searchsorted(reached, length.square().contiguous())
    last = (moving > 0).sum(1, keepdim=True) - 1
    inside = piece.clamp_max(start.shape[1] - 1)
    left = length.square() - stopped_before.gather(1, inside)
    wanted = (left.clamp_min(0.0) / moving.gather(1, inside)).sqrt()
    furthest = limits.gather(1, last.clamp_min(0))
    return torch.where(piece > last, furthest, wanted).nan_to_num(posinf=0.0)


def column(values: Shaped[Tensor, " rows"]) -> Shaped[Tensor, "rows 1"]:
    """One value a row, ready to scale rows."""
    return values[:, None]


def linear_distance(margin: Values, gradient: Vectors) -> Column:
    """Signed distance to the zero of the linearised margin; 0 where the gradient vanishes."""
    length = norm(gradient)
    return torch.where(length > 0, column(margin) / length, 0.0)


def cosine_decay(first: float, last: float, done: float) -> float:
    """From ``first`` at ``done = 0`` to ``last`` at ``done = 1``, flat at both ends."""
    return last + (first - last) * 0.5 * (1.0 + math.cos(math.pi * done))
