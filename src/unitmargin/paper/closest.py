"""Closest points of the paper's networks: what its figures of distances are drawn from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from unitmargin.certificates.joined import closest_found
from unitmargin.certificates.spaces import INPUT, NORMALISED
from unitmargin.certificates.tightness import Search
from unitmargin.paper.groups import row_names, same_trainings
from unitmargin.paper.networks import PAPER_SIDE, paper_input, paper_name, paper_side
from unitmargin.paper.printed import printed_rows
from unitmargin.runs.folder import RunFolder

CASES = (("norm", False), ("norm", True), ("raw", False), ("raw", True))
"""Input and box of the paper's panels, in their order."""

SPACES = {INPUT: "pixels", NORMALISED: "normalised"}
"""Names of the spaces in the tables."""

UNITS = {INPUT: "pixels", NORMALISED: "normalised units"}
"""What distances in them are said to be in."""

CLOSEST = (
    "MAP is the closest point that any solver of the run found. Norm rows are measured behind the "
    "normalisation, as in the paper, where all of them were searched there, else in pixels. Seeds "
    "of one row are taken together."
)


@dataclass(frozen=True)
class Found:
    """The closest points of one network.

    Attributes:
        name: of the network, with its budget or folders where another row has the same name.
        model: as the paper names it.
        search: for each sample of all seeds the closest point of all solvers.
    """

    name: str
    model: str
    search: Search


def closest_points(runs: Sequence[RunFolder], given: str, boxed: bool) -> list[Found]:
    """The closest points of all runs that are rows of the paper with that input and box.

    All are measured in one space. Networks without a found point are left out.
    """
    rows = [
        run
        for run in runs
        if paper_name(run.recipe())
        and (paper_input(run.recipe()), paper_side(run.recipe())) == (given, PAPER_SIDE)
    ]
    order = [row["model"] for row in printed_rows("tab:accuracy")]
    rows.sort(key=lambda run: order.index(paper_name(run.recipe())))
    groups = same_trainings(rows)
    models = [paper_name(group[0].recipe()) or "" for group in groups]
    names, space = row_names(models, groups), _space(rows, boxed)
    found = []
    for name, model, group in zip(names, models, groups, strict=True):
        parts = [part for run in group if (part := _closest(run, space, boxed)) is not None]
        if parts and any(bool(part.found.any()) for part in parts):
            found.append(Found(name, model, _together(parts)))
    return found


def _space(runs: Sequence[RunFolder], boxed: bool) -> str:
    """The paper's space if all runs were searched there, else pixels, where every run is."""
    spaces = [{search.space for search in _searches(run, boxed)} for run in runs]
    behind = [NORMALISED in known for known in spaces if known]
    return NORMALISED if behind and all(behind) else INPUT


def _closest(run: RunFolder, space: str, boxed: bool) -> Search | None:
    """The closest points of one run in a space; None if it was not searched there."""
    chosen = [search for search in _searches(run, boxed) if search.space == space]
    return closest_found(chosen) if chosen else None


def _searches(run: RunFolder, boxed: bool) -> list[Search]:
    return [search for search in run.searches() if (search.box is not None) == boxed]


def _together(parts: Sequence[Search]) -> Search:
    columns = ("index", "label", "radius", "distance", "status", "n_forward", "n_backward")
    joined = {name: torch.cat([getattr(part, name) for part in parts]) for name in columns}
    return replace(parts[0], **joined)  # type: ignore[arg-type]


def units(found: Sequence[Found]) -> str:
    """Units of the distances of a panel."""
    return UNITS[found[0].search.space if found else INPUT]


def case_name(given: str, boxed: bool) -> str:
    """A case as a title says it."""
    return f"{given} inputs, {'in the box' if boxed else 'without box'}"
