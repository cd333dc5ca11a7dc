"""The certificates: read, judged one by one, and written with what could be proved."""

import csv
import json
import math
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from unitmargin.checker.network import Network, Proof
from unitmargin.checker.reading import Array, CheckError, file_sha256, read_inputs, read_model

HEADER = ["index", "label", "predicted", "runner_up", "margin", "radius"]

FORMAT = "unitmargin-certificates-1"

BATCH = 250
"""Samples evaluated at once: the checker's memory."""


class Certificate(NamedTuple):
    """One row of certificates.csv: a claim about the input of that number."""

    row: int
    predicted: int
    runner_up: int
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
    if noted["inputs_sha256"] and inputs.suffix != ".npy" and (
        file_sha256(inputs) != noted["inputs_sha256"]
    ):  # fmt: skip
        raise CheckError(f"{inputs} is not the file of inputs that {facts} names; certify again")
    values = read_inputs(inputs, network_file.in_shape)
    if any(row.row != position for position, row in enumerate(rows)) or len(values) < len(rows):
        raise CheckError(f"rows must be numbered from 0 and have an input each ({len(values)})")
    network = Network(network_file, noted["profile"])
    verdicts: list[Verdict] = []
    for start in range(0, len(rows), BATCH):
        some = rows[start : start + BATCH]
        verdicts += _judge(network, some, values[start : start + len(some)])
    return verdicts, network.profile.name


def _judge(network: Network, rows: list[Certificate], x: Array) -> list[Verdict]:
    classes = len(network.weight)
    named = np.array([row.predicted if 0 <= row.predicted < classes else 0 for row in rows])
    try:
        with np.errstate(all="ignore"):  # NaN and infinity end as a radius of 0
            proof = network.prove(x, named)
    except (ValueError, TypeError, IndexError, ZeroDivisionError) as error:
        raise CheckError(f"the model does not fit its inputs: {error}") from None
    return [Verdict(row, float(proof.radius[i]), _reason(row, proof, i))
            for i, row in enumerate(rows)]  # fmt: skip


def _reason(row: Certificate, proof: Proof, i: int) -> str:
    """Why a claim is not confirmed; empty if it is, or if nothing is claimed."""
    margin, tolerance, radius = (
        float(values[i]) for values in (proof.margin, proof.tolerance, proof.radius)
    )
    if not (math.isfinite(row.radius) and row.radius >= 0.0):
        return f"radius {row.radius} is no distance"
    if row.radius == 0.0:
        return ""
    if row.predicted != proof.label[i]:
        return f"label {row.predicted}, got {proof.label[i]}"
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
    lines = ["index,predicted,radius,provable,difference,verdict"]
    for (index, predicted, _, _, radius), provable, reason in verdicts:
        word = f'"{reason}"' if reason else ("confirmed" if radius else "no claim")
        lines.append(f"{index},{predicted},{radius!r},{provable!r},{provable - radius!r},{word}")
    path = path.resolve()  # a link stays a link
    aside = path.with_name(f".{uuid4().hex}-{path.name}")  # no other process has this name
    try:
        aside.write_text("\n".join(lines) + "\n", encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        aside.unlink(missing_ok=True)


def _read_rows(path: Path) -> list[Certificate]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
        if header != HEADER or any(len(line) != len(HEADER) for line in lines):
            raise ValueError(f"its columns must be {', '.join(HEADER)}")
        return [
            Certificate(int(index), int(predicted), int(runner), float(margin), float(radius))
            for index, _, predicted, runner, margin, radius in lines
        ]
    except (ValueError, csv.Error) as error:
        raise CheckError(f"{path} is no table of certificates: {error}; certify again") from None


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise ValueError(f"its format must be {FORMAT}")
        if not isinstance(facts["profile"], str):
            raise ValueError(f"its profile must be a name, got {facts['profile']!r}")
        return {key: facts[key] for key in ("profile", "samples", "model_sha256", "inputs_sha256")}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckError(f"{path} does not describe certificates: {error}; certify again") from None
