"""The accuracy tables: means over seeds, both spaces, and rows that were not run."""

from pathlib import Path

import pytest
from certified import certified, table_rows, write_made_searches
from searches import made_search

from unitmargin.paper.accuracy import ACCURACY, INPUT_SIZE, accuracy_tables, percent
from unitmargin.paper.conditions import NOT_RUN
from unitmargin.paper.networks import row_recipe
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import read_recipe
from unitmargin.runs.shipped import embedded_recipe


def test_seeds_are_averaged_beside_the_paper(tmp_path: Path) -> None:
    row = row_recipe("UGNN+OPLU+updU", "raw")
    runs = [
        certified(tmp_path / "a", row, [0.2, 0.1, -9.0, 0.3], seed=0),
        certified(tmp_path / "b", row, [0.2, -0.1, -9.0, 0.1], seed=3),
    ]
    table = accuracy_tables("tab:accuracy", runs)[0]
    (ours,) = [row for row in table_rows(table) if row["Our accuracy"] != NOT_RUN]
    assert (ours["Model"], ours["Input"], ours["Side"]) == ("UGNN+OPLU+updU", "raw", "32")
    assert ours["Paper accuracy"] == "70.6 ± 0.45"
    assert ours["Our accuracy"] == "62.5 ± 17.68"
    assert ours["Certified 36/255"] == "37.5 ± 17.68"
    assert (ours["Seeds"], ours["Budget"], ours["Changed"]) == ("0, 3", "3 of 300", "nothing")
    assert (ours["LB/MAP, pixels"], ours["LB/MAP, normalised"], ours["Hours"]) == ("–", "–", "–")
    assert ours["Core-hours"] == "–"
    assert len(table_rows(table)) == 24


def test_radii_of_larger_inputs_are_shown_in_both_spaces(tmp_path: Path) -> None:
    row = row_recipe("UGNN+MaxMin+updB", "norm", 128)
    run = certified(tmp_path, row, [0.2, 0.6, -9.0, 0.1])
    table = accuracy_tables("tab:accuracy-input-size", [run])[0]
    (ours,) = [row for row in table_rows(table) if row["Our accuracy"] != NOT_RUN]
    assert ours["Side"] == "128"
    assert ours["Certified 36/255"] == "50.0"
    # Four pixels for one: 0.6 there is 0.15 here, and 0.2 is 0.05.
    assert ours["Certified 36/255, original pixels"] == "25.0"


def test_runs_that_differ_in_more_than_their_seed_are_two_rows(tmp_path: Path) -> None:
    row = row_recipe("UGNN+OPLU+updU", "raw")
    faster = {"optimizer": "sgd", "momentum": 0.5, "batch_size": 512}
    runs = [
        certified(tmp_path / "a", row, [0.2, 0.1]),
        certified(tmp_path / "b", row, [0.2, 0.1], seed=7, training=faster),
        certified(tmp_path / "c", row, [0.2, 0.1], training={"epochs": 9}),
    ]
    table = accuracy_tables("tab:accuracy", runs)[0]
    ours = [row for row in table_rows(table) if row["Our accuracy"] != NOT_RUN]
    assert [(row["Seeds"], row["Budget"], row["Changed"]) for row in ours] == [
        ("0", "3 of 300", "nothing"),
        ("7", "3 of 300", "batch_size 512, optimizer sgd, momentum 0.5"),
        ("0", "9 of 300", "nothing"),
    ]


def test_ratios_are_told_in_both_spaces(tmp_path: Path) -> None:
    run = certified(tmp_path, row_recipe("UGNN+OPLU+updU", "norm"), [1.0, 1.0])
    searches = [
        made_search([1.0, 1.0], [2.0, 4.0]),
        made_search([4.0, 4.0], [5.0, 5.0], space="normalised"),
        made_search([1.0, 1.0], [9.0, 9.0], box=(0.0, 1.0)),
    ]
    for search in searches:
        search.label[:] = 1
    write_made_searches(run, searches)
    table = accuracy_tables("tab:accuracy", [run])[0]
    (ours,) = [row for row in table_rows(table) if row["Our accuracy"] != NOT_RUN]
    assert (ours["LB/MAP, pixels"], ours["LB/MAP, normalised"]) == ("0.375", "0.800")


def test_a_run_whose_attack_was_interrupted_was_not_attacked(tmp_path: Path) -> None:
    run = certified(tmp_path, row_recipe("UGNN+OPLU+updU", "norm"), [1.0, 1.0])
    search = made_search([1.0, 1.0], [2.0, 4.0])
    search.label[:] = 1
    write_made_searches(run, [search])
    run.checks_file.unlink()
    table = accuracy_tables("tab:accuracy", [run])[0]
    (ours,) = [row for row in table_rows(table) if row["Our accuracy"] != NOT_RUN]
    assert (ours["Our accuracy"], ours["LB/MAP, pixels"]) == ("100.0", "–")


def test_without_runs_every_row_says_so() -> None:
    for label, count in (("tab:accuracy", 24), ("tab:accuracy-input-size", 12)):
        (table,) = accuracy_tables(label, [])
        assert [row["Our accuracy"] for row in table_rows(table)] == [NOT_RUN] * count


def test_a_run_that_was_not_certified_names_the_command(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.start(read_recipe(embedded_recipe(row_recipe("UGNN+Abs+updB", "raw"))))
    with pytest.raises(RunError, match=rf"run `unitmargin certify {tmp_path}` first"):
        accuracy_tables("tab:accuracy", [folder])


def test_targets_train_one_recipe_a_row() -> None:
    assert (len(ACCURACY.recipes), len(INPUT_SIZE.recipes)) == (24, 12)


def test_one_share_has_no_spread() -> None:
    assert percent([0.123]) == "12.3"


def test_a_ratio_of_some_seeds_says_of_how_many(tmp_path: Path) -> None:
    row = row_recipe("UGNN+OPLU+updU", "raw")
    runs = [
        certified(tmp_path / str(seed), row, [1.0, 1.0], training={"seed": seed})
        for seed in range(2)
    ]
    search = made_search([1.0, 1.0], [2.0, 2.0])
    search.label[:] = 1
    write_made_searches(runs[1], [search])
    table = accuracy_tables("tab:accuracy", runs)[0]
    (ours,) = [row for row in table_rows(table) if row["Our accuracy"] != NOT_RUN]
    assert (ours["LB/MAP, pixels"], ours["Seeds"]) == ("0.500 (1 of 2)", "0, 1")
