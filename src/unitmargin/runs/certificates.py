"""The files certificates.csv, certificates.json and inputs.safetensors, which certify writes."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int64
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, WrapValidator
from torch import Tensor

from unitmargin.certificates import accuracy
from unitmargin.certificates.certify import Certificate
from unitmargin.data import ENCODING, Samples, radius_units, stated_units
from unitmargin.foundation.files import (
    file_sha256,
    parse_json,
    read_json,
    require_hash,
    write_json,
)
from unitmargin.foundation.options import Options, among
from unitmargin.foundation.tables import read_table, write_table
from unitmargin.foundation.tensors import SpooledRows, read_header
from unitmargin.frozen import class_names
from unitmargin.frozen.profiles import PROFILES

Predicted = Annotated[int, Field(ge=-1)]
Label = Annotated[NonNegativeInt, WrapValidator(lambda text, judge: judge(text) if text else -1)]
Length = Annotated[NonNegativeFloat, Field(allow_inf_nan=False)]

COLUMNS: dict[str, Any] = {
    "index": NonNegativeInt,
    "label": Label,
    "label_name": str,
    "predicted": Predicted,
    "predicted_name": str,
    "runner_up": Predicted,
    "runner_up_name": str,
    "margin": Length,
    "radius": Length,
}
"""The index counts the rows; a class has a number and, where it is one, the model's name of it. An
unknown label is empty."""

SOURCE = {"source": str}
"""The last column of certificates of new inputs: where each is found again."""

BLOCK = 1000
"""Inputs hashed at once."""

NAMED = ("label", "predicted", "runner_up")

TENSORS = (*NAMED, "margin", "radius")


class Facts(Options):
    """What the certificates are of: certificates.json."""

    format: Literal["unitmargin-certificates-2"] = "unitmargin-certificates-2"
    profile: Annotated[str, among("profile", PROFILES)]
    samples: PositiveInt
    units: str = radius_units()
    classes: list[str]
    model_sha256: str
    inputs_sha256: str | None
    numbers_sha256: str | None = None


@dataclass(frozen=True, eq=False)
class Certificates:
    """Certificates of samples, in their order; all tensors have one entry a sample.

    Attributes:
        label: true labels, -1 where none is known.
        predicted, runner_up, margin, radius: as in :class:`unitmargin.Certificate`.
        profile: the execution profile that they hold for.
        source: where each input is found again; empty for the test samples of a run.
        numbers_sha256: hash of the inputs, :func:`hash_inputs`; None if it is not known.
    """

    label: Int64[Tensor, " batch"]
    predicted: Int64[Tensor, " batch"]
    runner_up: Int64[Tensor, " batch"]
    margin: Float64[Tensor, " batch"]
    radius: Float64[Tensor, " batch"]
    profile: str = "float64"
    source: tuple[str, ...] = ()
    numbers_sha256: str | None = None

    def __len__(self) -> int:
        return len(self.label)

    @property
    def right(self) -> Bool[Tensor, " batch"]:
        """Which samples were predicted as labelled."""
        return (self.predicted == self.label) & self.labelled

    @property
    def labelled(self) -> Bool[Tensor, " batch"]:
        """Of which samples the label is known."""
        return self.label >= 0

    def at(self, index: Int64[Tensor, " rows"]) -> "Certificates":
        """The certificates at some positions."""
        tensors = {name: getattr(self, name)[index] for name in TENSORS}
        source = tuple(self.source[place] for place in index.tolist()) if self.source else ()
        return replace(self, **tensors, source=source, numbers_sha256=None)

    def claims(self) -> Certificate:
        """What is claimed, without the slack, which no file holds."""
        rest = {name: getattr(self, name) for name in ("runner_up", "margin", "radius")}
        return Certificate(label=self.predicted, slack=torch.zeros_like(self.radius), **rest)

    @property
    def clean_accuracy(self) -> float:
        """Share of samples that are right, whatever their radius."""
        return float(self.right.double().mean())

    def certified_accuracy(self, epsilon: float) -> float:
        """Share of samples that are right with a radius strictly above ``epsilon``."""
        return accuracy.certified_share(self.right, self.radius, epsilon)


def hash_inputs(digest: "hashlib._Hash", inputs: Float32[np.ndarray, "batch *shape"]) -> None:
    """Add inputs to a SHA-256: their numbers in order, as little-endian float32."""
    digest.update(np.ascontiguousarray(inputs, "<f4").data)


def numbers_sha256(samples: Samples) -> str:
    """The hash of all inputs of samples, as certificates keep it."""
    digest = hashlib.sha256()
    for start in range(0, len(samples), BLOCK):
        inputs, _ = samples.batch(slice(start, start + BLOCK))
        hash_inputs(digest, inputs.cpu().numpy())
    return digest.hexdigest()


def write_certificates(
    table: Path,
    certificates: Certificates,
    classes: Sequence[str],
    model_sha256: str,
    inputs: Path,
    certified: SpooledRows | None = None,
    units: str | None = None,
) -> None:
    """Write certificates.csv, beside it what they are of, and the inputs' file.

    ``certified`` are the tensors exactly as they entered the network; without them an inputs' file
    is removed, since it may belong to other certificates. ``units`` are those of radii, by default
    of the inputs. What the certificates are of is written last and removed first: without it no
    certificates are read.

    Raises:
        ValueError: a class that the model does not have.
    """
    facts = table.with_suffix(".json")
    columns: dict[str, Any] = {"index": range(len(certificates))}
    for name in TENSORS:
        columns[name] = getattr(certificates, name).tolist()
        if name in NAMED:
            columns[f"{name}_name"] = _names(name, columns[name], classes)
    columns["label"] = ["" if number < 0 else number for number in columns["label"]]
    if certificates.source:
        columns["source"] = certificates.source
    facts.unlink(missing_ok=True)
    write_table(table, columns)
    inputs.unlink(missing_ok=True)
    if certified is not None:
        certified.write(inputs, "inputs")
    stated = Facts(
        profile=certificates.profile,
        samples=len(certificates),
        units=radius_units(units),
        classes=list(classes),
        model_sha256=model_sha256,
        inputs_sha256=None if certified is None else file_sha256(inputs),
        numbers_sha256=certificates.numbers_sha256,
    )
    write_json(facts, stated.model_dump())


def read_certificates(table: Path, model: Path, inputs: Path) -> Certificates:
    """Read certificates.csv.

    Raises:
        ValueError: a damaged file, numbers that are no certificates, or certificates of another
            model, other inputs, or another profile than the model's.
    """
    content = read_json(table.with_suffix(".json"))
    facts = Facts(**content if isinstance(content, dict) else {})
    require_hash("model_sha256", facts.model_sha256, model)
    if facts.inputs_sha256 is not None and inputs.is_file():
        require_hash("inputs_sha256", facts.inputs_sha256, inputs)
    classes = class_names(model)
    if facts.classes != list(classes):
        raise ValueError(
            f"classes must be {list(classes)}, those of the model, got {facts.classes}"
        )
    if (profile := _model_profile(model)) not in (None, facts.profile):
        raise ValueError(f"profile must be {profile!r}, that of the model, got {facts.profile!r}")
    if facts.units != (units := _model_units(model)):
        raise ValueError(f"units must be {units!r}, those of the model, got {facts.units!r}")
    columns = read_table(table, COLUMNS, SOURCE)
    source = tuple(columns.pop("source", ()))
    if columns.pop("index") != list(range(facts.samples)):
        raise ValueError(f"rows must be numbered from 0 to {facts.samples - 1}, got other ones")
    for name in NAMED:
        names = _names(name, columns[name], classes), columns[f"{name}_name"]
        for row, (true, found) in enumerate(zip(*names, strict=True)):
            if found != true:
                raise ValueError(f"{name}_name in line {row + 2} must be {true!r}, got {found!r}")
    tensors = {name: torch.from_numpy(np.array(columns[name])) for name in TENSORS}
    claimed = (tensors["predicted"] < 0) & (tensors["radius"] > 0)
    if bool(claimed.any()):
        row = int(claimed.nonzero()[0])
        found = float(tensors["radius"][row])
        raise ValueError(f"radius in line {row + 2} must be 0, of no class, got {found}")
    hashed = facts.numbers_sha256
    return Certificates(**tensors, profile=facts.profile, source=source, numbers_sha256=hashed)


def _model_profile(model: Path) -> Any:
    """The profile that a model file is certified under by itself; None where it states none."""
    return parse_json(read_header(model).get("profile", "null"))


def _model_units(model: Path) -> str:
    """What radii are measured in, by what a model file states of the columns of a table."""
    facts = parse_json(read_header(model).get("facts", "{}"))
    stated = facts.get(ENCODING) if isinstance(facts, dict) else None
    return stated_units(stated)


def _names(column: str, numbers: Sequence[int], classes: Sequence[str]) -> list[str]:
    """The names of classes, "" for -1, which is none."""
    if max(numbers, default=0) >= len(classes):
        raise ValueError(
            f"{column} must be below {len(classes)}, the number of classes of the model, got "
            f"{max(numbers)} in sample {numbers.index(max(numbers))}"
        )
    return [classes[number] if number >= 0 else "" for number in numbers]
