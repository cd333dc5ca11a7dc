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


def verified(path: Path, recipe: Recipe, far: float = 2.0, behind: bool = False) -> RunFolder:
    """A folder as verify leaves it: radii of 1 and distances ``far``, one sample failed, one wrong.

    ``behind``: searched behind a normalisation by 4, too, where the distance is 5.
    """
    folder = RunFolder(path)
    folder.start(recipe)
    free = Search(
        solver="fmn",
        settings="steps=9",
        box=None,
        index=torch.arange(4),
        label=torch.zeros(4, dtype=torch.int64),
        radius=torch.ones(4, dtype=torch.float64),
        distance=torch.tensor([far, far, torch.inf, 0.0], dtype=torch.float64),
        status=torch.tensor(
            [Status.FOUND, Status.FOUND, Status.FAILED, Status.ALREADY_MISCLASSIFIED]
        ),
        n_forward=torch.ones(4, dtype=torch.int64),
        n_backward=torch.ones(4, dtype=torch.int64),
    )
    write_made(folder, made_certificates([0] * 4, [1.0, 1.0, 1.0, -1.0]))
    content = {"hardware": "a_machine, 1 thread", "torch": "2.13.0", "commit": "abc"}
    searches = [free, replace(free, box=(0.0, 1.0))]
    if behind:
        moved = {"radius": 4.0 * free.radius, "distance": 2.5 * free.distance}
        searches.append(replace(free, space="normalised", **moved))
    write_made_weights(folder, content)
    write_made_searches(folder, searches, **content)
    return folder


def rows(table: Table) -> list[dict[str, str]]:
    return [dict(zip(table.header, row, strict=True)) for group in table.groups for row in group]


def test_a_run_stands_beside_the_paper(tmp_path: Path) -> None:
    tables = tightness_tables([verified(tmp_path / "mine", CIFAR)])
    assert [table.label for table in tables] == [
        *("tab:dist-table", "tab:further-map", "tab:false-positives", "tab:runs")
    ]
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
                    *("UGNN+Abs+updB", "raw", "", "pixels", "", ""),
                    *("0.500 ± 0.000", "2 of 3", "0.500", "–"),
                    *("mine", "7 of 300", "3", "4", "fmn (steps=9)", "a_machine, 1 thread"),
                ),
                strict=True,
            )
        )
    assert len(long) == 36
    (run,) = rows(tables[-1])
    assert (run["Run"], run["Head"], run["Commit"]) == ("mine", "bounded", "abc")
    assert (run["Torch"], run["Hardware"]) == ("2.13.0", "a_machine, 1 thread")


def test_norm_rows_are_measured_in_both_spaces_the_papers_first(tmp_path: Path) -> None:
    norm = CIFAR.changed(model={"normalization": "channel"})
    table = rows(tightness_tables([verified(tmp_path, norm, behind=True)])[1])
    ours = [row for row in table if row["Our LB/MAP"] != NOT_RUN]
    assert [(row["Box"], row["Space"], row["Our LB/MAP"]) for row in ours] == [
        ("yes", "pixels", "0.500 ± 0.000"),
        ("no", "normalised", "0.800 ± 0.000"),
        ("no", "pixels", "0.500 ± 0.000"),
    ]
    assert ours[1]["Paper LB/MAP"] == "0.96 ± 0.049"


def test_seeds_of_one_training_are_one_row(tmp_path: Path) -> None:
    runs = [
        verified(tmp_path / "a", CIFAR, 2.0),
        verified(tmp_path / "b", CIFAR.changed(training={"seed": 9}), 4.0),
        verified(tmp_path / "c", CIFAR.changed(training={"batch_size": 64}), 8.0),
    ]
    table = rows(tightness_tables(runs)[1])
    both, other = (row for row in table if row["Our LB/MAP"] != NOT_RUN and row["Box"] == "no")
    assert (both["Our LB/MAP"], both["Our #N"]) == ("0.375 ± 0.125", "4 of 6")
    assert (both["Over seeds"], both["Seed"], both["Run"]) == ("0.375 ± 0.1768", "3, 9", "a, b")
    assert (other["Our LB/MAP"], other["Seed"]) == ("0.125 ± 0.000", "3")


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
