"""Several searches as one: the closest points of all solvers, the parts of all processes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unitmargin.certificates.tightness import Integers, Search
from unitmargin.solvers import Status


def closest_found(searches: Sequence[Search]) -> Search:
    """For every sample that was searched the closest point that any of several searches found.

    All searches must have the same box and space. Calls are added.
    """
    index = torch.cat([search.index for search in searches]).unique()
    spread = [_spread_over(search, index) for search in searches]
    distances = torch.stack([search.distance for search in spread])
    chosen, rows = distances.argmin(0), torch.arange(len(index))
    status = torch.stack([search.status for search in spread])
    return replace(
        searches[0],
        solver=" or ".join(search.solver for search in searches),
        settings="; ".join(search.settings for search in searches),
        index=index,
        label=torch.stack([search.label for search in spread]).amax(0),
        radius=torch.stack([search.radius for search in spread]).amax(0),
        distance=distances[chosen, rows],
        status=status[chosen, rows],
        n_forward=torch.stack([search.n_forward for search in spread]).sum(0),
        n_backward=torch.stack([search.n_backward for search in spread]).sum(0),
    )


def _spread_over(search: Search, index: Integers) -> Search:
    """The search with a row for each sample; one that it left out is a failure without calls."""
    places = torch.searchsorted(index, search.index)

    def filled(own: Tensor, value: float | int = 0) -> Tensor:
        return torch.full((len(index),), value, dtype=own.dtype).index_copy(0, places, own)

    return replace(
        search,
        index=index,
        label=filled(search.label),
        radius=filled(search.radius),
        distance=filled(search.distance, torch.inf),
        status=filled(search.status, int(Status.FAILED)),
        n_forward=filled(search.n_forward),
        n_backward=filled(search.n_backward),
    )


def join_searches(searches: Sequence[Search]) -> Search:
    """One search of parts of the samples, which are put in the order of their positions."""
    index = torch.cat([search.index for search in searches])
    order = index.argsort()
    names = [name for name, value in vars(searches[0]).items() if isinstance(value, Tensor)]
    joined: dict[str, Any] = {
        name: torch.cat([getattr(search, name) for search in searches])[order] for name in names
    }
    return replace(searches[0], **joined)
