"""Run folders of the paper's rows as certify leaves them, without any training."""

from dataclasses import replace
from pathlib import Path

from unitmargin.foundation.tables import write_csv
from unitmargin.paper import Table
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import embedded_recipe, read_recipe

CERTIFICATES = ("index", "label", "predicted", "runner_up", "margin", "radius")


def certified(path: Path, row: str, radii: list[float], seed: int = 0) -> RunFolder:
    """A folder of three epochs; a negative radius stands for a wrong prediction."""
    recipe = read_recipe(embedded_recipe(row))
    folder = RunFolder(path)
    folder.start(replace(recipe, training=replace(recipe.training, seed=seed, epochs=3)))
    rows = [(i, 1, 1 if radius >= 0 else 0, 2, 1.0, abs(radius)) for i, radius in enumerate(radii)]
    write_csv(folder.certificates_file, CERTIFICATES, rows)
    return folder


def table_rows(table: Table) -> list[dict[str, str]]:
    """The rows of a table by the names of its columns."""
    return [dict(zip(table.header, row, strict=True)) for group in table.groups for row in group]
