"""Certified run folders of the plane, made by hand, to be compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from certificate_files import write_of_model
from certified import made_certificates, write_made_searches
from searches import made_search

from unitmargin.foundation.files import write_text
from unitmargin.frozen import Dense, FrozenNetwork, save
from unitmargin.runs.certifier import table_units
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.history import write_history
from unitmargin.runs.recipe import parse_recipe, write_recipe
from unitmargin.training.train import EpochRecord

CLASSES = ("left", "middle", "right", "none")


def made_run(
    path: Path,
    radii: list[float],
    name: str = "made",
    numbers: str | None = "same inputs",
    epochs: int = 3,
    facts: dict[str, Any] | None = None,
    classes: tuple[str, ...] = CLASSES,
    width: int = 2,
    **recipe: Any,
) -> RunFolder:
    """A certified run; a negative radius stands for a wrong prediction, ``numbers`` for the hash of
    the inputs."""
    folder = RunFolder(path)
    given = {"data": {"name": "moons"}, "model": {"name": "dense_ugnn"}} | recipe
    write_text(folder.recipe_file, write_recipe(parse_recipe({"name": name, **given})))
    head = Dense(torch.ones(len(classes), width), torch.zeros(len(classes)))
    frozen = FrozenNetwork([head], (width,), classes, facts)
    save(frozen, folder.model_file)
    certificates = replace(made_certificates([0] * len(radii), radii), numbers_sha256=numbers)
    files = folder.certificates_file, certificates, folder.model_file, folder.inputs_file
    write_of_model(*files, units=table_units(frozen))
    if epochs:
        shares = [0.5 + 0.1 * epoch for epoch in range(epochs)]
        records = [
            EpochRecord(epoch, 1.0, share, share - 0.1, 1e-7, 1e-3, 60.0)
            for epoch, share in enumerate(shares, 1)
        ]
        write_history(folder.history_file, records)
    return folder


def verify_made(folder: RunFolder, distances: list[float]) -> None:
    """Searches of all samples of a made run, and findings that describe them."""
    claims = folder.certificates()
    search = made_search(claims.radius.tolist(), distances)
    write_made_searches(folder, [replace(search, label=claims.label)])
