"""A classifier of the plane: its logits on a grid around test points and certified discs."""

from collections.abc import Sequence

import torch
from jaxtyping import Float64, Int64
from pydantic import ConfigDict
from torch import Tensor

from unitmargin.certificates.boundary import Values
from unitmargin.certificates.exhibits import Exhibit
from unitmargin.data import Samples
from unitmargin.foundation.options import Options
from unitmargin.frozen import FrozenNetwork

PLANE_SHAPE = (2,)

GRID = 240
"""Points a side of the grid."""

MOST_POINTS = 500
"""Test points shown: more hide the regions."""

EDGE = 0.06
"""Empty border, as a share of the extent of points and discs."""

FLAT = 1e-9
"""Least extent, as a share of the largest coordinate: numbers of a grid are apart."""


class Plane(Options):
    """Test points with labels, and the logits on the grid of both coordinates, x moving fastest."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    points: Float64[Tensor, "batch 2"]
    labels: Int64[Tensor, " batch"]
    horizontal: Float64[Tensor, " grid"]
    vertical: Float64[Tensor, " grid"]
    logits: Float64[Tensor, "cells classes"]


def sample_plane(frozen: FrozenNetwork, samples: Samples, exhibits: Sequence[Exhibit]) -> Plane:
    """The plane around all samples and the exhibits' discs.

    Cost: one float64 forward pass of ``GRID``^2 points.
    """
    inputs, labels = samples.batch(slice(0, len(samples)))
    points = inputs.double()
    horizontal, vertical = (_axis(points[:, axis], exhibits, axis) for axis in (0, 1))
    across, along = torch.meshgrid(horizontal, vertical, indexing="xy")
    with torch.no_grad():
        logits = frozen.in_float64()(torch.stack((across.flatten(), along.flatten()), dim=1))
    return Plane(
        points=points[:MOST_POINTS],
        labels=labels[:MOST_POINTS],
        horizontal=horizontal,
        vertical=vertical,
        logits=logits,
    )


def _axis(points: Values, exhibits: Sequence[Exhibit], axis: int) -> Float64[Tensor, " grid"]:
    discs = [(float(exhibit.original[axis]), exhibit.radius) for exhibit in exhibits]
    low = min([float(points.min()), *(centre - radius for centre, radius in discs)])
    high = max([float(points.max()), *(centre + radius for centre, radius in discs)])
    border = EDGE * (max(high - low, FLAT * max(abs(low), abs(high))) or 1.0)
    return torch.linspace(low - border, high + border, GRID, dtype=torch.float64)
