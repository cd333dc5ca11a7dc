"""The file solvers.csv: the answers of solvers, one row for each sample, solver and box."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from unitmargin.certificates.tightness import NO_BOX, Search, box_name
from unitmargin.foundation.tables import read_csv, write_csv
from unitmargin.runs.folder import RunError
from unitmargin.solvers import Status

HEADER = (
    "index",
    "label",
    "radius",
    "solver",
    "box",
    "distance",
    "status",
    "n_forward",
    "n_backward",
    "settings",
)


def write_searches(file: Path, searches: Sequence[Search]) -> None:
    """Write solvers.csv: one row for each sample, solver and box."""
    rows: list[tuple[Any, ...]] = []
    for search in searches:
        names = [Status(status).name.lower() for status in search.status.tolist()]
        columns = (
            search.index.tolist(),
            search.label.tolist(),
            search.radius.tolist(),
            search.distance.tolist(),
            names,
            search.n_forward.tolist(),
            search.n_backward.tolist(),
        )
        rows += [
            (index, label, radius, search.solver, box_name(search.box), *rest, search.settings)
            for index, label, radius, *rest in zip(*columns, strict=True)
        ]
    write_csv(file, HEADER, rows)


def read_searches(file: Path) -> list[Search]:
    """Read solvers.csv, in the order in which the searches were written.

    Raises:
        RunError: the file is damaged or empty.
    """
    groups: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    try:
        for row in read_csv(file):
            if None in row.values():
                raise ValueError("a row is incomplete")
            key = (row["solver"], row["settings"], row["box"])
            groups.setdefault(key, []).append(row)
        searches = [_read_search(*key, rows) for key, rows in groups.items()]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{file} is damaged ({error}); run `unitmargin verify {file.parent}` again"
        ) from None
    if not searches:
        raise RunError(f"{file} has no rows; run `unitmargin verify {file.parent}` again")
    return searches


def _read_search(solver: str, settings: str, box: str, rows: list[dict[str, str]]) -> Search:
    def whole(name: str) -> Int64[Tensor, " batch"]:
        return torch.tensor([int(row[name]) for row in rows], dtype=torch.int64)

    def real(name: str) -> Float64[Tensor, " batch"]:
        return torch.tensor([float(row[name]) for row in rows], dtype=torch.float64)

    bounds = None if box == NO_BOX else [float(part) for part in box.strip("[]").split(";")]
    return Search(
        solver=solver,
        settings=settings,
        box=None if bounds is None else (bounds[0], bounds[1]),
        index=whole("index"),
        label=whole("label"),
        radius=real("radius"),
        distance=real("distance"),
        status=torch.tensor([Status[row["status"].upper()] for row in rows], dtype=torch.int64),
        n_forward=whole("n_forward"),
        n_backward=whole("n_backward"),
    )
