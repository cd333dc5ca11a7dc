"""Titles say what is seen: of a report at its edges, and of runs beside each other."""

from pathlib import Path
from typing import Any

import pytest
from compared import made_run

from unitmargin.reporting.comparison import common_epsilons, differences, read_compared
from unitmargin.reporting.titles import comparison_titles, titles

EPOCH = {"epoch": 1, "loss": 2.0, "clean_accuracy": 0.5}

RUN: dict[str, Any] = {
    "headline_epsilon": 36 / 255,
    "clean_accuracy": 0.96,
    "certified_accuracy": {str(36 / 255): 0.75},
    "choices": [
        {"target": 0.99, "threshold": 0.25, "coverage": 0.8, "accuracy": 0.991},
        {"target": 1.0, "threshold": None},
    ],
    "coverage": [{"accepted": 100, "accuracy": 0.96}],
    "median_margin_right": 0.5,
    "median_margin_wrong": 0.125,
    "signed_distance": True,
    "unit_gradient_error": 3e-8,
    "history": [EPOCH, EPOCH | {"epoch": 2, "loss": 0.5, "clean_accuracy": 0.96}],
    "epochs": 2,
    "solvers": [{"n": 1, "mean": 0.95}, {"n": 5, "mean": 0.9}],
    "closest": [{"n": 5, "mean": 0.91}],
    "checks": [{"name": "solvers_outside_radius", "passed": True}],
    "false_positives": [
        {"precision": None, "epsilon": 0.25}, {"precision": 0.9, "epsilon": 0.5},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "changes", "title"),
    [
        ("certified", {}, "96.0% are right, and 75.0% certified at 36/255 as well"),
        ("coverage", {}, "Rejecting up to 0.25 leaves 80.0%, of which 99.1% are right"),
        ("coverage", {"choices": []}, "At threshold 0, 96.0% of the accepted are right"),
        (
            "coverage",
            {"choices": [], "coverage": [{"accepted": 0, "accuracy": None}]},
            "No prediction has a radius, so none is accepted",
        ),
        ("margins", {}, "Wrong predictions have smaller margins: 0.125 to 0.500, medians"),
        ("margins", {"median_margin_wrong": None}, "Every prediction is right"),
        ("margins", {"median_margin_right": None}, "Every prediction is wrong"),
        (
            "margins",
            {"median_margin_wrong": 0.75},
            "Wrong predictions have margins as large as right ones, median 0.750",
        ),
        ("gradients", {}, "Every gradient has norm 1, up to 3.0 × 10⁻⁸"),
        (
            "gradients",
            {"signed_distance": False},
            "Gradients have at most the constant of their pair: certificates are lower bounds",
        ),
        (
            "gradients",
            {"signed_distance": True, "unit_gradient_error": 5.54e-7},
            "Every gradient has norm 1, up to 5.6 × 10⁻⁷",
        ),
        ("loss", {}, "The loss went from 2 to 0.5 in 2 epochs"),
        ("loss", {"history": [EPOCH]}, "The loss of the one epoch is 2"),
        ("accuracy", {}, "96.0% clean after 2 epochs, the best of all"),
        (
            "accuracy",
            {"history": [EPOCH, EPOCH | {"epoch": 2, "clean_accuracy": 0.25}]},
            "25.0% clean after 2 epochs; the best was 50.0%",
        ),
        ("scatter", {}, "No point was found inside a certificate"),
        ("scatter", {"solvers": [{"n": 0, "mean": None}]}, "No solver found a point"),
        (
            "scatter",
            {"checks": [{"name": "solvers_outside_radius", "passed": False}]},
            "A point lies inside a certificate, which is broken",
        ),
        ("ratios", {}, "Certificates reach 91.0% of the distance found"),
        (
            "ratios",
            {"closest": [{"n": 5, "mean": 0.91}, {"n": 0, "mean": None}, {"n": 5, "mean": 0.8}]},
            "Certificates reach 80.0% to 91.0% of the distance found",
        ),
        ("ratios", {"closest": [{"n": 0, "mean": None}]}, "No solver found a point"),
        ("false_positives", {}, "“Not certified” is true for 90.0% or more (least at 0.5)"),
        (
            "false_positives",
            {"false_positives": [{"epsilon": 0.5, "precision": 0.98996}]},
            "“Not certified” is true for 98.9% or more (least at 0.5)",
        ),
        (
            "false_positives",
            {"false_positives": []},
            "Every right prediction with a point found is certified at every radius of the table",
        ),
        (
            "false_positives",
            {"false_positives": [], "solvers": [{"n": 0, "mean": None}]},
            "No right prediction was searched with success",
        ),
    ],
)
def test_titles_say_what_is_seen(name: str, changes: dict[str, Any], title: str) -> None:
    assert titles(RUN | changes)[name] == title


def compared(path: Path, *radii: list[float], **options: Any) -> dict[str, str]:
    folders = [
        made_run(path / str(number), each, f"run{number}", **options)
        for number, each in enumerate(radii)
    ]
    runs = read_compared(folders)
    epsilons = common_epsilons(runs)
    return comparison_titles(runs, epsilons, differences(runs, epsilons))


def test_the_leader_is_named_and_a_tie_is_one(tmp_path: Path) -> None:
    long, short, sure = [1.0, 1.0, 2.0], [0.5, 0.5, 0.5], [-1.0, 2.0, 2.0]
    found = compared(tmp_path / "a", short, long)
    assert found["accuracy"] == "run1 has most at every radius"
    assert found["clean"] == "run0 and run1 end at 70.0% clean accuracy"
    assert compared(tmp_path / "b", long, long)["accuracy"].startswith("run0 and run1 have most at")
    crossing = compared(tmp_path / "c", short, sure)["accuracy"]
    assert crossing == "run0 has most clean, run1 at 0.5"
    four = compared(tmp_path / "d", *4 * [long])
    assert four["accuracy"] == "4 runs have most at every radius"
    assert four["differences"] == "0 of 9 differences are clear of the choice of the test samples"


def test_one_run_and_no_history_have_titles(tmp_path: Path) -> None:
    found = compared(tmp_path, [0.5, 0.5, -1.0], epochs=0)
    assert found["accuracy"] == "0.0% are certified at 0.5"
    assert found["clean"] == ""
