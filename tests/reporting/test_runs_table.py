"""The table of runs: results, cost, and only what differs in the recipes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from certified import write_made_searches
from compared import made_run, verify_made
from searches import made_search

from unitmargin.certificates.tightness import describe_settings
from unitmargin.reporting.comparison import Compared, common_epsilons, read_compared
from unitmargin.reporting.runs_table import (
    Row,
    cost_rows,
    origin_rows,
    recipe_rows,
    result_rows,
)


def read(path: Path, *recipes: dict[str, Any]) -> list[Compared]:
    folders = [
        made_run(path / str(number), [0.5, 1.0, -0.2], **recipe)
        for number, recipe in enumerate(recipes)
    ]
    return read_compared(folders)


def cells(rows: list[Row]) -> dict[str, list[str]]:
    return dict(rows)


def test_only_options_that_differ_are_told_with_their_defaults(tmp_path: Path) -> None:
    runs = read(
        tmp_path,
        {"model": {"name": "dense_ugnn", "hidden": [4, 4]}, "training": {"epochs": 3}},
        {"model": {"name": "dense_ugnn"}, "training": {"epochs": 5, "flip": True}},
        {"model": {"name": "dense_ugnn", "hidden": [4, 4]}, "data": {"name": "moons", "limit": 9}},
    )
    assert cells(recipe_rows(runs)) == {
        "data.limit": ["not set", "not set", "9"],
        "model.hidden": ["4, 4", "not set", "4, 4"],
        "training.epochs": ["3", "5", "30"],
        "training.flip": ["false", "true", "false"],
    }


def test_options_of_one_model_alone_are_absent_in_others(tmp_path: Path) -> None:
    runs = read(tmp_path, {}, {"model": {"name": "mixing_ugnn", "absolute": 0.5}})
    found = cells(recipe_rows(runs))
    assert found["model.absolute"] == ["–", "0.5"]
    assert found["model.hidden"][1] == "–"
    assert recipe_rows(runs[:1]) == []


def test_names_and_places_of_data_are_no_difference(tmp_path: Path) -> None:
    data = {"name": "npz", "path": "/home/one.npz"}
    runs = read(tmp_path, {"data": data, "name": "a"}, {"data": data | {"path": "two.npz"}})
    assert recipe_rows(runs) == []


def test_searches_of_one_space_and_of_the_same_settings_share_a_row(tmp_path: Path) -> None:
    radius = [0.5, 1.0]
    folders = [made_run(tmp_path / name, radius) for name in "ab"]
    plain = replace(made_search(radius, [1.0, 1.0]), settings=describe_settings("fmn"))
    longer = replace(made_search(radius, [0.5, 1.0]), settings=describe_settings("fmn", steps=9))
    behind = made_search([2.0, 4.0], [4.0, 4.0], space="normalised")
    for folder, searches in zip(folders, ([plain, behind], [longer, plain, behind]), strict=True):
        labels = folder.certificates().label
        write_made_searches(folder, [replace(search, label=labels) for search in searches])
    runs = read_compared(folders)
    rows = cells(result_rows(runs, common_epsilons(runs)))
    assert {name: row for name, row in rows.items() if name.startswith("Radius")} == {
        "Radius / distance, fmn without box": ["0.750 ± 0.250 (2 of 2)"] * 2,
        "Radius / distance, fmn without box with steps=9": [
            "not searched", "1.000 ± 0.000 (2 of 2)",
        ],
    }  # fmt: skip


def test_results_and_cost_by_hand(tmp_path: Path) -> None:
    folders = [
        made_run(tmp_path / "a", [0.5, 1.0, -0.2]),
        made_run(tmp_path / "b", [0.5, 1.0, 2.0], epochs=0),
    ]
    verify_made(folders[0], [0.5, 2.0, 0.0])
    runs = read_compared(folders)
    results = cells(result_rows(runs, common_epsilons(runs)))
    assert results["Clean accuracy"] == ["66.67%", "100.00%"]
    assert results["Certified at 0.5"] == ["33.33%", "66.67%"]
    assert results["Median certified radius"] == ["0.750", "1.000"]
    assert results["Radius / distance, fmn without box with steps=3"] == [
        "0.750 ± 0.250 (2 of 2)", "not searched",
    ]  # fmt: skip
    assert results["Checks"] == ["0 of 0 passed", "not verified"]
    cost = cells(cost_rows(runs))
    assert cost["Stored numbers"] == ["12", "12"]
    assert cost["Training"] == ["3.0 min, 3 epochs", "no history"]
    origin = cells(origin_rows(runs))
    assert origin["Model, SHA-256"][0] == runs[0].model_sha256[:12]
    assert origin["Training samples, SHA-256"] == ["not stated", "not stated"]
