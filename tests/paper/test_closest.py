"""Closest points for figures: the paper's space, all solvers, all seeds of a row."""

from pathlib import Path

import pytest
from certified import certified, write_made_searches
from searches import made_search

from unitmargin.certificates.tightness import Search
from unitmargin.paper.closest import closest_points, units
from unitmargin.paper.false_positives import (
    EPSILONS,
    false_positive_figure,
    false_positive_table,
    precisions,
)
from unitmargin.paper.layout import Table
from unitmargin.runs.folder import RunFolder

BOX = (0.0, 1.0)
NORM, RAW = "paper/ugnn-oplu-updu-norm", "paper/resnet9-raw"


def searched(
    path: Path, row: str, searches: list[Search], seed: int = 0, epochs: int = 3
) -> RunFolder:
    run = certified(path, row, [1.0, 0.4], seed, training={"epochs": epochs})
    for search in searches:
        search.label[:] = 1
    write_made_searches(run, searches)
    return run


@pytest.fixture
def runs(tmp_path: Path) -> list[RunFolder]:
    normalised = [
        made_search([1.0, 0.4], [9.0, 9.0]),
        made_search([4.0, 1.6], [5.0, 2.0], space="normalised"),
        made_search([4.0, 1.6], [6.0, 1.8], "ddn", space="normalised"),
        made_search([1.0, 0.4], [2.0, 0.5], box=BOX),
    ]
    return [
        searched(tmp_path / "a", NORM, normalised),
        searched(tmp_path / "b", NORM, normalised, seed=1),
        searched(tmp_path / "c", RAW, [made_search([1.0, 0.4], [2.0, 0.0])]),
    ]


def test_norm_rows_are_taken_behind_the_normalisation(runs: list[RunFolder]) -> None:
    (free,) = closest_points(runs, "norm", boxed=False)
    assert (free.name, free.search.space) == ("UGNN+OPLU+updU", "normalised")
    assert free.search.distance.tolist() == [5.0, 1.8, 5.0, 1.8]
    (boxed,) = closest_points(runs, "norm", boxed=True)
    assert boxed.search.space == "input"
    assert boxed.search.distance.tolist() == [2.0, 0.5, 2.0, 0.5]


def test_a_case_without_a_search_is_empty(runs: list[RunFolder]) -> None:
    (raw,) = closest_points(runs, "raw", boxed=False)
    assert (raw.name, int(raw.search.found.sum())) == ("ResNet9", 1)
    assert closest_points(runs, "raw", boxed=True) == []


def test_two_lengths_of_a_row_are_told_apart(tmp_path: Path) -> None:
    searches = [made_search([1.0, 0.4], [2.0, 2.0])]
    rows = [searched(tmp_path / str(n), RAW, searches, epochs=n) for n in (3, 9)]
    names = [found.name for found in closest_points(rows, "raw", boxed=False)]
    assert names == ["ResNet9, 3 of 200 epochs", "ResNet9, 9 of 200 epochs"]


def test_a_panel_has_one_space(tmp_path: Path, runs: list[RunFolder]) -> None:
    """One row that was searched in pixels alone sets all others to pixels."""
    pixels = [made_search([1.0, 0.4], [2.0, 0.5])]
    for row, seed in ((NORM, 2), ("paper/resnet9-norm", 0)):
        other = searched(tmp_path / row / str(seed), row, pixels, seed)
        found = closest_points([*runs, other], "norm", boxed=False)
        assert {network.search.space for network in found} == {"input"}
        assert units(found) == "pixels"
        assert found[-1].search.distance.tolist() == [9.0, 9.0, 9.0, 9.0, 2.0, 0.5][: 4 + 2 * seed]
    assert units(closest_points(runs, "norm", boxed=False)) == "normalised units"
    axes = false_positive_figure(runs)[0].axes
    assert [panel.get_xlabel() for panel in axes[:2]] == ["ε, in normalised units", "ε, in pixels"]


def test_precisions_are_counts(runs: list[RunFolder]) -> None:
    """Radii 1 and 0.4, distances 2 and 0.5, twice: at 0.5 the second alone is positive, and true;
    at 1 both are, and one is true."""
    (boxed,) = closest_points(runs, "norm", boxed=True)
    assert precisions(boxed) == [None, None, 0.0, 1.0, 0.5]
    assert [round(epsilon, 3) for epsilon in EPSILONS] == [0.141, 0.282, 0.424, 0.5, 1.0]
    table: Table = false_positive_table(runs)
    assert [len(group) for group in table.groups] == [1, 1, 1, 0]
    cells = ("UGNN+OPLU+updU", "norm", "yes", "pixels", "4", "–", "–", "0.0", "100.0", "50.0")
    assert table.groups[1][0] == cells
