"""The tutorials run, without a warning, and come to what their text says."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from matplotlib import pyplot

import unitmargin as um

TUTORIALS = Path(__file__).parents[1] / "examples/tutorials"

GRID = 0.005 * 2**0.5
"""Diagonal of a cell of the grid in which the first tutorial looks the distance up."""

Run = Callable[[str], dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a tutorial where nothing else lies, and gives its names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    matplotlib.use("Agg")

    def run(name: str) -> dict[str, Any]:
        try:
            return runpy.run_path(str(TUTORIALS / f"{name}.py"))
        finally:
            pyplot.close("all")

    return run


def test_in_the_plane_the_radius_is_the_distance_where_nothing_is_between(run: Run) -> None:
    names = run("1_signed_distance")
    assert names["accuracy"] > 0.95
    assert names["ordinary_accuracy"] > 0.95
    assert bool((names["certificate"].radius[:100] <= names["distance"]).all())
    assert float(names["ratio"].median()) > 0.95
    assert int(names["exact"].sum()) >= 20
    assert float(names["apart"]) < 1e-6
    assert float(names["units"].min()) > 10
    nearer = names["searched"].distance - names["own"].radius
    assert float(nearer.min()) > -1e-9
    assert float((names["distance"] - names["certificate"].radius[:100]).min()) < GRID


def test_of_a_table_radii_are_in_the_units_that_were_named(run: Run) -> None:
    names = run("2_tables_and_units")
    accuracy = um.certified_accuracy(names["certificate"], names["labels"], 0.0)
    assert accuracy > 0.9
    assert um.certified_accuracy(names["errors"], names["kinds"], names["epsilon"]) > 0.7
    radius = float(names["certificate"].radius[names["chosen"]])
    assert float(names["scaled"].norm()) >= radius * (1 - 1e-6)
    certified, near, broken = names["answers"]
    assert (certified.outcome, certified.name) == ("certified", "cultivar 0")
    assert near.outcome in {"certified", "below_threshold"}
    assert broken.reason == "no value for 'proline'"


@pytest.mark.nightly
def test_a_service_answers_photos_and_not_those_at_the_boundary(run: Run) -> None:
    names = run("3_photos_to_a_service")
    assert um.certified_accuracy(names["certificate"], names["labels"], 0.0) > 0.75
    assert 0 < names["chosen"] < 0.5
    assert float(names["attack"].distance[0]) >= float(names["certificate"].radius[names["own"]])
    assert names["guard"](names["changed"]).outcome in {"below_threshold", "no_claim"}
    assert names["guard"](names["x"][names["own"]]).outcome == "certified"


def test_every_tutorial_is_run() -> None:
    named = Path(__file__).read_text()
    tutorials = sorted(TUTORIALS.glob("*.py"))
    assert len(tutorials) == 3
    assert all(f'run("{tutorial.stem}")' in named for tutorial in tutorials)
