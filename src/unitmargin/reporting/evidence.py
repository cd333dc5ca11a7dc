"""What the steps before the report left in a run folder, read and checked against each other."""

import json
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from unitmargin.certificates.tightness import Search
from unitmargin.data import Samples
from unitmargin.foundation.tables import read_csv
from unitmargin.frozen import FrozenNetwork
from unitmargin.runs.certificates import RADIUS_AGREEMENT
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import Recipe
from unitmargin.runs.searches import read_searches


@dataclass(frozen=True, eq=False)
class Predictions:
    """The columns of certificates.csv."""

    label: Int64[Tensor, " batch"]
    predicted: Int64[Tensor, " batch"]
    margin: Float[Tensor, " batch"]
    radius: Float[Tensor, " batch"]

    @property
    def right(self) -> Bool[Tensor, " batch"]:
        """Which samples were predicted as labelled."""
        return self.predicted == self.label

    def certified_accuracy(self, epsilon: float) -> float:
        """Share of samples that are right with a radius above ``epsilon``."""
        return float((self.right & (self.radius > epsilon)).double().mean())


@dataclass(frozen=True, eq=False)
class Evidence:
    """A finished run: every file of its folder, and the test samples it speaks of."""

    recipe: Recipe
    frozen: FrozenNetwork
    test: Samples
    predictions: Predictions
    history: list[dict[str, float]]
    checks: list[dict[str, Any]]
    verified_samples: int
    searches: list[Search]

    def check(self, name: str) -> float | None:
        """The value that ``verify`` measured under this name; None if it was skipped."""
        value = next(check["value"] for check in self.checks if check["name"] == name)
        return None if value is None else float(value)

    @property
    def signed_distance(self) -> bool:
        """Whether unit gradients were promised, and so checked."""
        return self.check("unit_gradient") is not None


REQUIRED_CHECKS = ("orthogonality", "upd", "unit_gradient")


def read_evidence(folder: RunFolder) -> Evidence:
    """Read a run folder after ``verify``.

    Raises:
        RunError: a file is missing or does not fit the others; the message names the command.
    """
    recipe, history = folder.recipe(), folder.history()
    frozen = folder.frozen()
    predictions = _read_predictions(folder)
    checks, verified_samples = _read_checks(folder)
    test = folder.dataset().test
    if not torch.equal(predictions.label, test.labels):
        raise RunError(
            f"{folder.certificates_file} must have one row for each of the {len(test)} test "
            f"samples, got {len(predictions.label)} rows or other labels; run `unitmargin certify "
            f"{folder.path}` again"
        )
    searches = _read_searches(folder, predictions)
    return Evidence(recipe, frozen, test, predictions, history, checks, verified_samples, searches)


def _read_predictions(folder: RunFolder) -> Predictions:
    file = folder.require(folder.certificates_file, f"certify {folder.path}")
    rows = read_csv(file)
    try:
        return Predictions(
            label=torch.tensor([int(row["label"]) for row in rows], dtype=torch.int64),
            predicted=torch.tensor([int(row["predicted"]) for row in rows], dtype=torch.int64),
            margin=torch.tensor([float(row["margin"]) for row in rows], dtype=torch.float64),
            radius=torch.tensor([float(row["radius"]) for row in rows], dtype=torch.float64),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{file} is damaged ({error}); run `unitmargin certify {folder.path}` again"
        ) from None


def _read_searches(folder: RunFolder, predictions: Predictions) -> list[Search]:
    file = folder.require(folder.solvers_file, f"verify {folder.path}")
    searches = read_searches(file)
    for search in searches:
        fits = int(search.index.max()) < len(predictions.label)
        if fits:
            same = torch.equal(search.label, predictions.label[search.index])
            gap = (search.radius - predictions.radius[search.index]).abs().max()
            fits = same and float(gap) <= RADIUS_AGREEMENT
        if not fits:
            raise RunError(
                f"{file} must hold labels and radii of {folder.certificates_file}, got others for "
                f"{search}; run `unitmargin verify {folder.path}` again"
            )
    return searches


def _read_checks(folder: RunFolder) -> tuple[list[dict[str, Any]], int]:
    file = folder.require(folder.checks_file, f"verify {folder.path}")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        checks, samples = list(content["checks"]), int(content["samples"])
        missing = set(REQUIRED_CHECKS) - {check["name"] for check in checks}
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{file} is damaged ({error}); run `unitmargin verify {folder.path}` again"
        ) from None
    if missing:
        raise RunError(
            f"{file} must hold the checks {', '.join(REQUIRED_CHECKS)}, got none named "
            f"{', '.join(sorted(missing))}; run `unitmargin verify {folder.path}` again"
        )
    return checks, samples
