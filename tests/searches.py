"""Answers of solvers, made by hand."""

import torch

from unitmargin.certificates.spaces import Box
from unitmargin.certificates.tightness import Search
from unitmargin.solvers import Status


def made_search(
    radius: list[float],
    distance: list[float],
    solver: str = "fmn",
    box: Box | None = None,
    space: str = "input",
) -> Search:
    """A search with given radii and distances; a distance of 0 stands for a wrong prediction, an
    infinite one for a failed search."""
    count, far = torch.arange(len(radius)), torch.tensor(distance, dtype=torch.float64)
    status = torch.where(far > 0, int(Status.FOUND), int(Status.ALREADY_MISCLASSIFIED))
    return Search(
        solver=solver,
        settings="steps=3",
        box=box,
        index=count,
        label=count % 2,
        radius=torch.tensor(radius, dtype=torch.float64),
        distance=far,
        status=torch.where(torch.isinf(far), int(Status.FAILED), status),
        n_forward=2 * count,
        n_backward=count,
        space=space,
    )
