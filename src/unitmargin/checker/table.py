"""The certificates: read, judged one by one, and written with what could be proved."""

import csv
import hashlib
import io
import math
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from unitmargin.checker.network import Network, Proof
from unitmargin.checker.reading import (
    UNFIT,
    Array,
    CheckError,
    file_sha256,
    read_inputs,
    read_model,
)
from unitmargin.checker.strict import is_size, parse
from unitmargin.checker.units import radius_units

HEADER = [
    "index", "label", "label_name", "predicted", "predicted_name", "runner_up", "runner_up_name",
    "margin", "radius",
]  # fmt: skip

FORMAT = "unitmargin-certificates-2"

BATCH = 250
"""Most samples evaluated at once."""

NUMBERS = 2**22
"""Most numbers of the widest layer evaluated at once, of which some ten copies exist: the checker's
memory, unless a single sample has more."""


class Certificate(NamedTuple):
    """One row of certificates.csv: a claim about the input of that number. ``names`` are those of
    label, predicted class and runner-up."""

    row: int
    label: int
    predicted: int
    runner_up: int
    names: tuple[str, str, str]
    margin: float
    radius: float


class Verdict(NamedTuple):
    """A claim and what was proved; ``reason`` is empty if the claim is confirmed, or claims
    nothing (radius 0)."""

    certificate: Certificate
    provable: float
    reason: str


def check(certificates: Path, facts: Path, model: Path, inputs: Path) -> tuple[list[Verdict], str]:
    """Judge every certificate of a table; also the name of the profile that they are made for.

    Args:
        certificates: certificates.csv.
        facts: certificates.json, which names profile and model.
        model: the model file.
        inputs: the certified inputs in order, .safetensors (tensor ``inputs``) or .npy.

    Raises:
        CheckError: a file that is damaged, or does not belong to the others.
    """
    noted = _read_facts(facts)
    rows = _read_rows(certificates)
    if len(rows) != noted["samples"]:
        raise CheckError(f"{certificates} has {len(rows)} rows, {facts} says {noted['samples']}")
    network_file = read_model(model)
    if network_file.sha256 != noted["model_sha256"]:
        raise CheckError(f"{model} is not the model that {facts} names; pass that one, or certify")
    if noted["inputs_sha256"] and inputs.suffix.lower() != ".npy" and (
        file_sha256(inputs) != noted["inputs_sha256"]
    ):  # fmt: skip
        raise CheckError(f"{inputs} is not the file of inputs that {facts} names; certify again")
    if noted["classes"] != network_file.classes:
        raise CheckError(f"{facts} has other classes than {model}; certify again")
    if noted["units"] != _units(network_file.encoding, model):
        raise CheckError(f"{facts} says other units of radii than {model}; certify again")
    values = read_inputs(inputs, network_file.in_shape)
    if any(row.row != position for position, row in enumerate(rows)):
        raise CheckError(
            f"rows must be numbered from 0 in {certificates}, got others; certify again"
        )
    if len(values) < len(rows):
        raise CheckError(
            f"{inputs} must hold an input for each of the {len(rows)} rows of {certificates}, got "
            f"{len(values)}; pass those that were certified"
        )
    if noted["numbers_sha256"] is not None:
        with np.errstate(all="ignore"):
            held = values[: len(rows)].astype("<f4")  # as when certified
        if hashlib.sha256(held.tobytes()).hexdigest() != noted["numbers_sha256"]:
            raise CheckError(f"{inputs} holds other numbers than {facts} names; pass those")
        values = held.astype(np.float64)
    network = Network(network_file, noted["profile"])
    verdicts: list[Verdict] = []
    batch = max(1, min(BATCH, NUMBERS // network.widest))
    for start in range(0, len(rows), batch):
        some = rows[start : start + batch]
        wrong = [_wrong_class(row, network_file.classes) for row in some]
        judged = _judge(network, some, values[start : start + len(some)])
        verdicts += [
            verdict._replace(reason=verdict.reason or name)
            for name, verdict in zip(wrong, judged, strict=True)
        ]
    return verdicts, network.profile.name


def _judge(network: Network, rows: list[Certificate], x: Array) -> list[Verdict]:
    classes = len(network.weight)
    named = np.array([row.predicted if 0 <= row.predicted < classes else 0 for row in rows])
    with np.errstate(all="ignore"):  # NaN and infinity end as a radius of 0
        proof = network.prove(x, named)
    return [Verdict(row, float(proof.radius[i]), _reason(row, proof, i))
            for i, row in enumerate(rows)]  # fmt: skip


def _units(encoding: Any, model: Path) -> str:
    try:
        return radius_units(encoding)
    except UNFIT as error:
        raise CheckError(f"{model} states no encoding of a table: {error}; freeze again") from None


def _wrong_class(row: Certificate, classes: list[str]) -> str:
    """Which class is none, or has a name that is not the model's; empty if all are right. -1 stands
    for no class and has no name."""
    numbers = {"label": row.label, "predicted": row.predicted, "runner-up": row.runner_up}
    for (what, number), name in zip(numbers.items(), row.names, strict=True):
        if not -1 <= number < len(classes):
            return f"{what} {number} is no class"
        true = classes[number] if number >= 0 else ""
        if name != true:
            return f"name {name!r} of {what} {number}, got {true!r}"
    return ""


def _reason(row: Certificate, proof: Proof, i: int) -> str:
    """Why a claim is not confirmed; empty if it is, or if nothing is claimed."""
    margin, tolerance, radius = (
        float(values[i]) for values in (proof.margin, proof.tolerance, proof.radius)
    )
    if not (math.isfinite(row.radius) and row.radius >= 0.0):
        return f"radius {row.radius} is no distance"
    if not (math.isfinite(row.margin) and row.margin >= 0.0):
        return f"margin {row.margin} is no distance"
    if row.radius == 0.0:
        return ""
    if row.predicted != proof.label[i]:
        return f"label {row.predicted}, got {proof.label[i]}"
    if not math.isfinite(tolerance):
        return "nothing is proved of numbers as large as those of this evaluation"
    if not abs(row.margin - margin) <= tolerance:
        return f"margin {row.margin!r}, got {margin!r}"
    if not 0 <= row.runner_up < proof.differences.shape[1]:
        return f"runner-up {row.runner_up} is no class"
    if not proof.differences[i, row.runner_up] <= margin + 2.0 * tolerance:
        return f"runner-up {row.runner_up}, got {proof.differences[i].argmin()}"
    if not row.radius <= radius:
        return f"radius {row.radius!r}, proved {radius!r}"
    return ""


def write(verdicts: list[Verdict], path: Path) -> None:
    """A table with each claim, what was proved, the difference, and the verdict."""
    lines = [
        ["index", "predicted", "predicted_name", "radius", "provable", "difference", "verdict"]
    ]
    for row, provable, reason in verdicts:
        word = reason or ("confirmed" if row.radius else "no claim")
        numbers = map(repr, (row.radius, provable, provable - row.radius))
        lines.append([str(row.row), str(row.predicted), row.names[1], *numbers, word])
    path = path.resolve()  # a link stays a link
    aside = path.with_name(f".{uuid4().hex}-{path.name}")  # no other process has this name
    try:
        aside.write_text("".join(map(_line, lines)), encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        aside.unlink(missing_ok=True)


def _line(cells: list[str]) -> str:
    """One row; a cell with a comma, a quote or any line end is quoted."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _read_rows(path: Path) -> list[Certificate]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = [*csv.reader(file)] or [[]]
        if header not in (HEADER, [*HEADER, "source"]) or {*map(len, lines)} - {len(header)}:
            raise ValueError(f"its columns must be {', '.join(HEADER)}, and source or none")
        return [_certificate(dict(zip(HEADER, line, strict=False))) for line in lines]
    except (ValueError, csv.Error) as error:
        raise CheckError(f"{path} is no table of certificates: {error}; certify again") from None


def _certificate(cells: dict[str, str]) -> Certificate:
    numbers = [text for name, text in cells.items() if not name.endswith("_name")]
    if not all(text.isascii() and text.strip("_ ") == text and "_" not in text for text in numbers):
        raise ValueError(f"a row holds the numbers {numbers}")
    if cells["label"].startswith("-"):
        raise ValueError(f"a row holds the label {cells['label']}; an unknown one is empty")
    return Certificate(
        row=int(cells["index"]),
        label=int(cells["label"] or -1),
        predicted=int(cells["predicted"]),
        runner_up=int(cells["runner_up"]),
        names=(cells["label_name"], cells["predicted_name"], cells["runner_up_name"]),
        margin=float(cells["margin"]),
        radius=float(cells["radius"]),
    )


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = parse(path.read_bytes())
        if not isinstance(facts, dict) or facts["format"] != FORMAT:
            raise ValueError(f"its format must be {FORMAT}")
        if not (isinstance(facts["profile"], str) and is_size(facts["samples"])):
            raise ValueError("its profile must be a name, its samples a number of at least 1")
        keys = "profile", "samples", "classes", "model_sha256", "inputs_sha256"
        noted = {key: facts[key] for key in keys} | {"numbers_sha256": facts.get("numbers_sha256")}
        noted["units"] = facts.get("units", radius_units(None))
        hashes = [noted[key] or noted["model_sha256"] for key in noted if key.endswith("256")]
        if not all(isinstance(text, str) and len(text) == 64 for text in hashes):
            raise ValueError(f"its hashes must have 64 digits, got {hashes}")
        return noted
    except UNFIT as error:
        raise CheckError(f"{path} does not describe certificates: {error}; certify again") from None
