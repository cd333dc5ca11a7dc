"""Runs beside each other: what is read of each, which may be compared, and their differences."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from unitmargin.certificates.epsilons import Epsilons, choose_epsilons
from unitmargin.certificates.spaces import INPUT
from unitmargin.certificates.tightness import Search
from unitmargin.reporting.places import shortest_places
from unitmargin.reporting.statistics import (
    Difference,
    Values,
    paired_difference,
    unpaired_difference,
)
from unitmargin.runs.certificates import Certificates
from unitmargin.runs.certifier import holds_pixels, radius_space, stated_encoding
from unitmargin.runs.findings import Findings
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.reading import RunReading
from unitmargin.runs.recipe import IMAGES, NAMED_BY, SHARDS, Recipe
from unitmargin.training.identity import DataIdentity
from unitmargin.training.train import EpochRecord

FILES = {IMAGES, SHARDS, *NAMED_BY.values()}
"""Data sets whose name says nothing of their content, which is that of somebody's files."""


@dataclass(frozen=True, eq=False)
class Compared:
    """A certified run as it is compared, None where it has no such file.

    Attributes:
        name: by which the page calls it, of no other run.
        place: its folder.
        classes, in_shape, units, encoding, pixels: of the network.
        parameters: stored numbers of the network.
        model_sha256: of its file.
        facts: hardware, torch and commit of the training.
        data: on what it was trained, by content.
        searches: what each solver found in input units, and under which settings.
    """

    name: str
    place: Path
    recipe: Recipe
    classes: tuple[str, ...]
    in_shape: tuple[int, ...]
    units: str
    encoding: Any
    pixels: bool
    parameters: int
    model_sha256: str
    facts: dict[str, str]
    certificates: Certificates
    data: DataIdentity | None
    history: tuple[EpochRecord, ...] | None
    findings: Findings | None
    searches: list[Search]

    def tests_as(self, other: "Compared") -> bool:
        """Whether it was certified on the very samples of another run, as far as files say."""
        mine, theirs = self.certificates, other.certificates
        if not torch.equal(mine.label, theirs.label):
            return False
        if mine.numbers_sha256 and theirs.numbers_sha256:
            return mine.numbers_sha256 == theirs.numbers_sha256
        known = self.data is not None and other.data is not None
        return known and self.data.test_sha256 == other.data.test_sha256  # type: ignore[union-attr]


class Against(NamedTuple):
    """A run against the first one: differences of shares by radius, and of mean radii."""

    name: str
    paired: bool
    accuracy: dict[float, Difference]
    radius: Difference


def read_compared(folders: Sequence[RunFolder]) -> list[Compared]:
    """Certified runs that may be compared.

    Raises:
        RunError: a run that is not certified yet, or a damaged file; the message names the command.
        ValueError: no run, one run twice, or runs whose radii or shares cannot be compared.
    """
    if not folders:
        raise ValueError("folders must be one run folder or more, got none; name two to compare")
    places = [folder.path.resolve() for folder in folders]
    if len(set(places)) < len(places):
        twice = next(place for place, times in Counter(places).items() if times > 1)
        raise ValueError(f"folders must differ, got {twice} twice; name each run once")
    names = distinct_names([folder.recipe().name for folder in folders], places)
    readings = [RunReading(folder.path) for folder in folders]
    runs = [_read(reading, name) for reading, name in zip(readings, names, strict=True)]
    for run in runs[1:]:
        _require_comparable(runs[0], run)
    return runs


def distinct_names(names: Sequence[str], places: Sequence[Path]) -> list[str]:
    """The names, those that occur twice with as much of their places as tells them apart.

    Example:
        >>> distinct_names(["a", "b", "b"], [Path("runs/a"), Path("old/b"), Path("new/b")])
        ['a', 'b (old/b)', 'b (new/b)']
    """
    times = Counter(names)
    shared = [place for name, place in zip(names, places, strict=True) if times[name] > 1]
    told = iter(shortest_places(shared))
    return [f"{name} ({next(told)})" if times[name] > 1 else name for name in names]


def common_epsilons(runs: Sequence[Compared]) -> Epsilons:
    """The radii at which all runs are told, those of a report of all radii together."""
    radii = torch.cat([run.certificates.radius for run in runs])
    return choose_epsilons(radii, runs[0].pixels)


def differences(runs: Sequence[Compared], epsilons: Epsilons) -> list[Against]:
    """Each run but the first against the first, sample by sample where the samples are the same."""
    first, *others = runs
    rows = []
    for run in others:
        paired = run.tests_as(first)
        difference = paired_difference if paired else unpaired_difference
        accuracy = {
            epsilon: difference(_certified(run, epsilon), _certified(first, epsilon))
            for epsilon in epsilons.table
        }
        rows.append(Against(run.name, paired, accuracy, difference(_radius(run), _radius(first))))
    return rows


def certified_share(run: Compared, epsilon: float) -> float:
    """Share of samples that are right and, of a radius above 0, certified beyond it."""
    return float(_certified(run, epsilon).mean())


def _certified(run: Compared, epsilon: float) -> Values:
    """1 for each sample that is right and certified beyond a radius, else 0; at 0 right is enough,
    since clean accuracy asks for no radius."""
    right, radius = run.certificates.right, run.certificates.radius
    return (right & (radius > epsilon) if epsilon > 0 else right).double()


def _radius(run: Compared) -> Values:
    """The certified radius of each sample, 0 where the prediction is wrong."""
    return torch.where(run.certificates.right, run.certificates.radius, 0.0)


def _read(folder: RunReading, name: str) -> Compared:
    frozen, sha256 = folder.hashed_frozen()
    certificates = folder.certificates()
    trained, verified = folder.weights_file.is_file(), folder.checks_file.is_file()
    return Compared(
        name=name,
        place=folder.path,
        recipe=folder.recipe(),
        classes=frozen.classes,
        in_shape=frozen.in_shape,
        units=radius_space(frozen),
        encoding=stated_encoding(frozen),
        pixels=holds_pixels(frozen),
        parameters=sum(tensor.numel() for tensor in frozen.state_dict().values()),
        model_sha256=sha256,
        facts={key: str(frozen.facts.get(key, "")) for key in ("hardware", "torch", "commit")},
        certificates=certificates,
        data=folder.origin().identity.data if trained else None,
        history=folder.history() if folder.history_file.is_file() else None,
        findings=folder.findings() if verified else None,
        searches=[each for each in folder.searches() if each.space == INPUT] if verified else [],
    )


def _require_comparable(first: Compared, run: Compared) -> None:
    """Raise unless radii of two runs are in the same units and shares of the same kind of data."""
    repeated = [each.recipe.data.upsample for each in (first, run)]
    for what, wanted, got in (
        ("inputs of shape", first.in_shape, run.in_shape),
        ("radii in", first.units, run.units),
        ("radii in pixels that are repeated so many times:", *repeated),
        ("the classes", ", ".join(first.classes), ", ".join(run.classes)),
    ):
        if wanted != got:
            raise ValueError(
                f"{run.place} must have {what} {wanted}, as {first.place} has, got {got}; compare "
                "runs of one kind of data"
            )
    if first.encoding != run.encoding:
        raise ValueError(
            f"{run.place} must have its columns in the units of {first.place}, got other shifts, "
            "units or columns; train both on the same training rows"
        )
    if not run.tests_as(first) and _source(run) != _source(first):
        raise ValueError(
            f"{run.place} must be certified on the data of {first.place}, "
            f"{first.recipe.data.name!r}, got other samples of {run.recipe.data.name!r}; compare "
            "runs of one data set"
        )


def _source(run: Compared) -> tuple[str, str | None]:
    """Where samples come from: a data set of that name, or of somebody's files also their place."""
    data = run.recipe.data
    return data.name, data.path if data.name in FILES else None
