"""The LB/MAP tables: a run stands in the paper's row it belongs to, and the others are not run."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from certified import made_certificates, write_made, write_made_searches, write_made_weights

from unitmargin.certificates.tightness import Search
from unitmargin.paper import Table
from unitmargin.paper.conditions import NOT_RUN
from unitmargin.paper.tightness import HEADER, tightness_tables
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.solvers import Status
from unitmargin.training.options import TrainingOptions

CIFAR = Recipe(
    name="mine",
    data=DataOptions(name="cifar10"),
    model=ModelOptions(
        name="ugnn", normalization="centre", options={"activation": "abs", "head": "bounded"}
    ),
    training=TrainingOptions(epochs=7, seed=3),
)


def verified(path: Path, recipe: Recipe) -> RunFolder:
    """A folder as verify leaves it: radii of half the distance, one sample failed, one wrong."""
    folder = RunFolder(path)
    folder.start(recipe)
    free = Search(
        solver="fmn",
        settings="steps=9",
        box=None,
        index=torch.arange(4),
        label=torch.zeros(4, dtype=torch.int64),
        radius=torch.ones(4, dtype=torch.float64),
        distance=torch.tensor([2.0, 2.0, torch.inf, 0.0], dtype=torch.float64),
        status=torch.tensor(
            [Status.FOUND, Status.FOUND, Status.FAILED, Status.ALREADY_MISCLASSIFIED]
        ),
        n_forward=torch.ones(4, dtype=torch.int64),
        n_backward=torch.ones(4, dtype=torch.int64),
    )
    write_made(folder, made_certificates([0] * 4, [1.0, 1.0, 1.0, -1.0]))
    content = {"hardware": "a_machine, 1 thread", "torch": "2.13.0", "commit": "abc"}
    write_made_searches(folder, [free, replace(free, box=(0.0, 1.0))], **content)
    write_made_weights(folder, content)
    return folder


def rows(table: Table) -> list[dict[str, str]]:
    return [dict(zip(table.header, row, strict=True)) for group in table.groups for row in group]


def test_a_run_stands_beside_the_paper(tmp_path: Path) -> None:
    tables = tightness_tables([verified(tmp_path / "mine", CIFAR)])
    assert [table.label for table in tables] == ["tab:dist-table", "tab:further-map", "tab:runs"]
    short, long = rows(tables[0]), rows(tables[1])
    assert all(row["Our LB/MAP"] == NOT_RUN for row in short)
    ours = [row for row in long if row["Our LB/MAP"] != NOT_RUN]
    assert [row["Box"] for row in ours] == ["yes", "no"]
    assert [row["Paper LB/MAP"] for row in ours] == ["0.71 ± 0.090", "0.95 ± 0.058"]
    for row in ours:
        assert row | {"Box": "", "Paper LB/MAP": "", "Paper #N": ""} == dict(
            zip(
                HEADER,
                (
                    *("UGNN+Abs+updB", "raw", "", "", "", "0.500 ± 0.000", "2 of 3", "0.500"),
                    *("mine", "7 of 300", "3", "4", "fmn (steps=9)", "a_machine, 1 thread"),
                ),
                strict=True,
            )
        )
    assert len(long) == 36
    (run,) = rows(tables[2])
    assert (run["Run"], run["Head"], run["Commit"]) == ("mine", "bounded", "abc")
    assert (run["Torch"], run["Hardware"]) == ("2.13.0", "a_machine, 1 thread")


def test_other_runs_have_a_table_of_their_own(tmp_path: Path) -> None:
    digits = Recipe(
        name="d", data=DataOptions(name="digits", limit=9), model=ModelOptions(name="dense_ugnn")
    )
    tables = {table.label: rows(table) for table in tightness_tables([verified(tmp_path, digits)])}
    assert [row["Model"] for row in tables["tab:other-runs"]] == ["dense_ugnn on digits"] * 2
    assert all(row["Our LB/MAP"] == NOT_RUN for row in tables["tab:further-map"])
    assert tables["tab:runs"][0]["Data"] == "digits, 9 samples"


def test_without_runs_every_row_says_so() -> None:
    tables = tightness_tables([])
    assert [len(rows(table)) for table in tables] == [14, 36]
    assert all(row["Our LB/MAP"] == NOT_RUN for table in tables for row in rows(table))


def test_a_run_that_was_not_verified_names_the_command(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.start(CIFAR)
    with pytest.raises(RunError, match=rf"run `unitmargin verify {tmp_path}` first"):
        tightness_tables([folder])
