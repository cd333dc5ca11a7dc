"""Certified accuracy by radius: the curve counts, and both spaces differ by the up-sampling."""

from pathlib import Path

import numpy as np
import pytest
from certified import certified, table_rows

from unitmargin.paper.networks import row_recipe
from unitmargin.paper.robust_accuracy import (
    LARGE,
    ROBUST_ACCURACY,
    curve,
    epsilons,
    legend_names,
    robust_accuracy,
)

RADII = [0.2, 1.0, -9.0, 0.4]


def test_the_curve_counts_right_samples_above_each_radius(tmp_path: Path) -> None:
    run = certified(tmp_path, row_recipe("UGNN+OPLU+updU", "raw"), RADII)
    counted = [np.mean([radius > 2.0 * epsilon for radius in RADII]) for epsilon in epsilons()]
    np.testing.assert_array_equal(curve(run, 2.0), counted)


def test_both_spaces_stand_in_the_table(tmp_path: Path) -> None:
    runs = [
        certified(tmp_path / "large", row_recipe(*LARGE), [0.2, 4.0, -9.0, 1.2]),
        certified(tmp_path / "small", row_recipe("UGNN+OPLU+updU", "raw"), [0.2, 4.0, -9.0, 1.2]),
        certified(tmp_path / "other", row_recipe("UGNN+OPLU+updU", "norm"), [0.2]),
    ]
    assert list(map(ROBUST_ACCURACY.takes, runs)) == [True, True, False]
    output = robust_accuracy(runs[:2])
    table = table_rows(output.tables[0])
    assert [(row["Side"], row["Space"]) for row in table] == [
        ("256", "own input"),
        ("256", "original pixels"),
        ("32", "own input"),
    ]
    assert [row["0.141"] for row in table] == ["75.0", "50.0", "75.0"]
    assert [row["0.250"] for row in table] == ["50.0", "25.0", "50.0"]


def test_figures_say_what_was_not_run(tmp_path: Path) -> None:
    run = certified(tmp_path, row_recipe("UGNN+OPLU+updU", "raw"), RADII)
    figures = robust_accuracy([run]).figures
    lines = [len(axes.lines) for axes in figures["robust-lineplot"][0].axes]
    assert lines == [1, 0, 1]
    peers = figures["rob-accuracy"][0].axes
    assert all(axes.texts[0].get_text() == "not run" for axes in peers)


def test_two_trainings_of_a_network_have_two_names(tmp_path: Path) -> None:
    row = row_recipe("UGNN+OPLU+updU", "raw")
    runs = [
        certified(tmp_path / str(epochs), row, RADII, training={"epochs": epochs})
        for epochs in (3, 9)
    ]
    names = legend_names([[run] for run in runs])
    assert names == [f"UGNN+OPLU+updU, {epochs} of 300 epochs, seed 0" for epochs in (3, 9)]
    lines = robust_accuracy(runs).figures["robust-lineplot"][0].axes[0].lines
    assert len({line.get_color() for line in lines}) == 2


def test_relative_curves_start_at_one(tmp_path: Path) -> None:
    run = certified(tmp_path, row_recipe("UGNN+OPLU+updU", "raw"), RADII)
    relative = robust_accuracy([run]).figures["robust-lineplot"][0].axes[2]
    assert relative.lines[0].get_ydata()[0] == 1.0


def test_relative_curves_are_relative_to_all_right_predictions(tmp_path: Path) -> None:
    run = certified(tmp_path, row_recipe("UGNN+OPLU+updU", "raw"), [0.0, 1.0, -9.0, 0.4])
    relative = robust_accuracy([run]).figures["robust-lineplot"][0].axes[2]
    assert relative.lines[0].get_ydata()[0] == pytest.approx(2 / 3)


def test_the_rows_are_the_raw_ones_and_the_largest() -> None:
    assert len(ROBUST_ACCURACY.recipes) == 13
    assert ROBUST_ACCURACY.recipes[-1] == "paper/ugnn-maxmin-updb-256-raw"
