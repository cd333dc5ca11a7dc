"""Certificates against distances: the paper's counts, by hand."""

import doctest
import math

import pytest
from searches import made_search

from unitmargin.certificates.epsilons import FIELD
from unitmargin.reporting import distances
from unitmargin.reporting.distances import (
    closest_by_box,
    false_positives,
    summarize_searches,
)
from unitmargin.reporting.wording import calls, fixed, percent, spread

SEARCH = made_search([0.1, 0.2, 0.3, 0.9, 0.1, 0.1], [0.2, 0.6, 0.5, 1.0, math.inf, 0.0])


def test_examples() -> None:
    assert doctest.testmod(distances).failed == 0


@pytest.mark.parametrize(
    ("epsilon", "true", "false", "precision"),
    [(0.05, 0, 0, None), (0.1, 0, 1, 0.0), (0.2, 1, 1, 0.5), (0.5, 2, 1, 2 / 3), (2.0, 4, 0, 1.0)],
)
def test_false_positives_by_hand(
    epsilon: float, true: int, false: int, precision: float | None
) -> None:
    row = false_positives(SEARCH, epsilon)
    assert (row["true_positives"], row["false_positives"]) == (true, false)
    assert row["precision"] == precision


def test_summary_and_words() -> None:
    searches = [
        SEARCH,
        made_search(6 * [0.1], 6 * [0.0]),
        made_search([0.5], [1.0], box=(0.0, 1.0)),
    ]
    summary = summarize_searches(searches, FIELD)
    assert [row["n"] for row in summary["solvers"]] == [4, 0, 1]
    assert summary["solvers"][1]["mean"] is None
    first, second, _ = summary["solvers"]
    assert (first["n"], first["right"]) == (4, 5)
    ratio, passes = spread(second["mean"], second["spread"]), calls(second["n_backward"])
    assert (ratio, fixed(second["smallest"]), passes) == ("none", "none", "none")


def test_figures_take_the_closest_point_of_each_box() -> None:
    box = (0.0, 1.0)
    searches = [
        made_search([1.0], [3.0]),
        made_search([1.0], [2.0], solver="ddn"),
        made_search([1.0], [4.0], box=box),
    ]
    assert [(group.box, float(group.distance)) for group in closest_by_box(searches)] == [
        (None, 2.0),
        (box, 4.0),
    ]
    assert summarize_searches(searches, FIELD)["closest"] == [
        {"box": "none", "n": 1, "mean": 0.5},
        {"box": "[0, 1]", "n": 1, "mean": 0.25},
    ]


def test_no_positive_is_no_percentage() -> None:
    assert percent(false_positives(SEARCH, 0.0)["precision"]) == "none"
