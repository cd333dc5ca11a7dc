"""Run folders of the paper's rows as certify leaves them, without any training."""

import json
from pathlib import Path
from typing import Any

import torch
from certificate_files import write_of_model

from unitmargin.auditing.finding import not_run
from unitmargin.certificates.tightness import Search, describe
from unitmargin.data import Dataset, Samples
from unitmargin.foundation.files import file_sha256
from unitmargin.foundation.tensors import write_tensors
from unitmargin.models import DenseUGNN
from unitmargin.paper import Table
from unitmargin.runs.certificates import Certificates
from unitmargin.runs.findings import REQUIRED, Findings
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.linked import WEIGHTS_FACT
from unitmargin.runs.recipe import read_recipe
from unitmargin.runs.searches import write_searches
from unitmargin.runs.shipped import embedded_recipe
from unitmargin.runs.weights import origin_of, write_weights


def made_certificates(labels: list[int], radii: list[float]) -> Certificates:
    """Certificates by hand; a negative radius stands for a wrong prediction."""
    label, radius = torch.tensor(labels), torch.tensor(radii, dtype=torch.float64)
    predicted = torch.where(radius >= 0, label, label + 1)
    return Certificates(label, predicted, label + 2, torch.ones_like(radius), radius.abs())


def write_made(folder: RunFolder, certificates: Certificates) -> None:
    """Certificates of a model file that has class names and nothing else."""
    header = {"classes": json.dumps([f"class {number}" for number in range(99)])}
    if folder.weights_file.is_file():
        header["facts"] = json.dumps({WEIGHTS_FACT: file_sha256(folder.weights_file)})
    write_tensors(folder.model_file, {"nothing": torch.zeros(1)}, header)
    write_of_model(folder.certificates_file, certificates, folder.model_file, folder.inputs_file)


def write_made_searches(folder: RunFolder, searches: list[Search], **provenance: str) -> None:
    """Searches, and findings that describe them and nothing else."""
    write_searches(folder.solvers_file, searches)
    Findings(
        passed=True,
        samples=len(searches[0].index),
        **{"hardware": "", "torch": "", "commit": ""} | provenance,
        model_sha256=file_sha256(folder.model_file),
        checks=[not_run(name, "made by hand") for name in REQUIRED],
        solvers=[describe(search) for search in searches],
    ).write(folder.checks_file)


def certified(
    path: Path, row: str, radii: list[float], seed: int = 0, **changes: dict[str, Any]
) -> RunFolder:
    """A folder of three epochs; a negative radius stands for a wrong prediction."""
    recipe = read_recipe(embedded_recipe(row)).changed(training={"seed": seed, "epochs": 3})
    folder = RunFolder(path)
    folder.start(recipe.changed(**changes))
    write_made(folder, made_certificates([1] * len(radii), radii))
    return folder


def table_rows(table: Table) -> list[dict[str, str]]:
    """The rows of a table by the names of its columns."""
    return [dict(zip(table.header, row, strict=True)) for group in table.groups for row in group]


def write_made_weights(folder: RunFolder, provenance: dict[str, str], content: float = 0.0) -> None:
    """Weights of a small network behind the certificates, trained on samples of that
    content, with this provenance."""
    certificates, options = folder.certificates(), folder.recipe().training
    model, samples = DenseUGNN((2,), 2), Samples(torch.full((2, 2), content), torch.arange(2))
    origin = origin_of(model, Dataset("made", samples, samples, ("a", "b")), options)
    write_weights(folder.weights_file, model, origin.changed(provenance=provenance))
    write_made(folder, certificates)
