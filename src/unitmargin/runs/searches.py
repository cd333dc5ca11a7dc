"""The file solvers.csv: the answers of solvers, one row for each sample, solver and box."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import BeforeValidator, NonNegativeFloat, NonNegativeInt

from unitmargin.certificates.spaces import INPUT, NORMALISED, Box
from unitmargin.certificates.stored import RADIUS_AGREEMENT
from unitmargin.certificates.tightness import NO_BOX, Search, Values, box_name, describe
from unitmargin.foundation.choice import choose
from unitmargin.foundation.options import among
from unitmargin.foundation.tables import read_table, write_table
from unitmargin.runs.certificates import Certificates, Length
from unitmargin.solvers import Status

ROUNDING = 1e-12
"""Share of the largest radius that rounding may move another one by, where inputs are in large
units."""

STATUSES = {status.name.lower(): status for status in Status}


def _read_box(word: str) -> Box | None:
    """A box as :func:`box_name` writes it."""
    if word == NO_BOX:
        return None
    low, high = (float(part) for part in word.strip("[]").split(","))
    return low, high


KINDS: dict[str, Any] = {
    "index": NonNegativeInt,
    "label": NonNegativeInt,
    "radius": Length,
    "solver": str,
    "box": Annotated[Box | None, BeforeValidator(_read_box)],
    "distance": NonNegativeFloat,
    "status": Annotated[int, BeforeValidator(lambda word: choose("status", word, STATUSES))],
    "n_forward": NonNegativeInt,
    "n_backward": NonNegativeInt,
    "settings": str,
    "space": Annotated[str, among("space", (INPUT, NORMALISED))],
}

SHARED = ("solver", "settings", "box", "space")
"""Columns with one entry a search."""

NUMBERS = tuple(name for name in KINDS if name not in SHARED)
"""Columns with one entry a sample."""


def write_searches(file: Path, searches: Sequence[Search]) -> None:
    """Write solvers.csv."""
    columns: dict[str, list[Any]] = {name: [] for name in KINDS}
    for search in searches:
        shared = vars(search) | {"box": box_name(search.box)}
        for name, column in columns.items():
            entry = shared[name]
            column += [entry] * len(search.index) if name in SHARED else entry.tolist()
    columns["status"] = [Status(status).name.lower() for status in columns["status"]]
    write_table(file, columns)


def read_searches(
    file: Path, certificates: Certificates, described: Sequence[dict[str, Any]]
) -> list[Search]:
    """Read solvers.csv, in the order in which the searches were written.

    Raises:
        ValueError: a damaged file, numbers that are no distances, labels and radii that are not
            those of the certificates, or other searches and samples than checks.json describes.
    """
    columns = read_table(file, KINDS)
    keys = list(zip(*(columns.pop(name) for name in SHARED), strict=True))
    numbers = {name: torch.from_numpy(np.array(column)) for name, column in columns.items()}
    searches = []
    for key in dict.fromkeys(keys):
        own = torch.tensor([other == key for other in keys])
        tensors: dict[str, Any] = {name: column[own] for name, column in numbers.items()}
        searches.append(Search(**dict(zip(SHARED, key, strict=True)), **tensors))
        _require_fit(searches[-1], certificates)
    if list(map(_identity, map(describe, searches))) != list(map(_identity, described)):
        raise ValueError(
            f"it must hold all rows of the {len(described)} searches of checks.json, got "
            f"{', '.join(map(str, searches)) or 'none'} of {len(keys)} rows"
        )
    return searches


def _identity(description: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(description.get(name) for name in (*SHARED, "samples"))


def _require_fit(search: Search, certificates: Certificates) -> None:
    """Raise unless a search is about samples of the certificates, each once."""
    index = search.index
    fits = int(index.max()) < len(certificates) and len(index.unique()) == len(index)
    if fits:
        stored = certificates.at(index)
        fits = torch.equal(search.label, stored.label) and _same_radii(search, stored.radius)
    if not fits or bool(search.distance[search.found].isinf().any()):
        raise ValueError(
            "it must hold labels and radii of certificates.csv, each sample once, and finite "
            f"distances where points were found, got others for {search}"
        )


def _same_radii(search: Search, radius: Values) -> bool:
    """Whether radii are those of the certificates; behind a normalisation, multiples of them."""
    total = float(radius.sum())
    factor = float(search.radius.sum()) / total if search.space != INPUT and total else 1.0
    gap = float((search.radius - factor * radius).abs().max())
    return gap <= max(RADIUS_AGREEMENT * max(1.0, factor), ROUNDING * float(search.radius.max()))
