"""Figures: SVG that stands alone, follows the page's theme, and survives extreme data."""

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import partial

import pytest
import torch
from matplotlib.figure import Figure
from searches import made_search

from unitmargin.certificates.epsilons import FIELD
from unitmargin.certificates.tightness import Search
from unitmargin.reporting import figures
from unitmargin.reporting.coverage_figure import coverage_figure
from unitmargin.reporting.distances import summarize_searches
from unitmargin.reporting.drawing import THEME
from unitmargin.reporting.figures import (
    accuracy_curve,
    certified_curve,
    false_positive_bars,
    gradient_norm_histogram,
    loss_curve,
    margin_histogram,
    radius_scatter,
    ratio_histogram,
)
from unitmargin.training.train import EpochRecord

HISTORY = [EpochRecord(epoch, 2.0 / epoch, 0.9, 0.8, 1e-7, 1e-3, 2.0) for epoch in range(1, 5)]
RADII = torch.tensor([0.1, 0.3, 0.6], dtype=torch.float64)
TABLE = {0.0: 0.75, 0.25: 0.5, 1.0: 0.0}
COVERAGE = {"threshold": [0.0, 0.5, 1.0], "accepted": [3, 1, 0], "wrong": [1, 0, 0]}
NOBODY = COVERAGE | {"accepted": [0, 0, 0], "wrong": [0, 0, 0]}
CHOICES = [
    {"target": 0.99, "threshold": 0.4},
    {"target": 0.999, "threshold": 0.41},
    {"target": 1.0, "threshold": None},
    {"target": 1.0, "threshold": 7.0},
]
SAMPLES = {
    "both boxes": [
        made_search([0.1, 0.3, 0.5], [0.2, 0.3, 0.0]),
        made_search([0.1, 0.3, 0.5], [0.2, 0.6, 0.0], box=(0.0, 1.0)),
    ],
    "no box": [made_search([0.1, 0.3], [0.2, 0.3])],
    "nothing found": [made_search([0.1], [math.inf]), made_search([0.1], [0.0], box=(0.0, 1.0))],
    "all exact": [made_search([0.5, 0.5], [0.5, 0.5])],
    "a broken certificate": [made_search([0.5], [0.25])],
}


def bars(searches: list[Search]) -> str:
    return false_positive_bars(summarize_searches(searches, FIELD)["false_positives"])


DRAWINGS: dict[str, Callable[[list[Search]], str]] = {
    "scatter": radius_scatter,
    "ratios": ratio_histogram,
    "bars": bars,
}

FIGURES: dict[str, Callable[[], str]] = {
    "certified": lambda: certified_curve(RADII, RADII < 0.5, TABLE),
    "none right": lambda: certified_curve(RADII, RADII < 0, {0.0: 0.0, 0.25: 0.0}),
    "coverage": lambda: coverage_figure(COVERAGE, 4),
    "nobody accepted": lambda: coverage_figure(NOBODY, 4, CHOICES[2:]),
    "coverage with choices": lambda: coverage_figure(COVERAGE, 4, CHOICES),
    "loss": lambda: loss_curve(HISTORY),
    "loss of one epoch": lambda: loss_curve(HISTORY[:1]),
    "accuracy": lambda: accuracy_curve(HISTORY, "36/255"),
    "gradients": lambda: gradient_norm_histogram(1.0 + 1e-8 * torch.randn(9, 3).double()),
    "exact gradients": lambda: gradient_norm_histogram(torch.ones(9, 3)),
    "gradients far off": lambda: gradient_norm_histogram(torch.rand(9, 3)),
    "margins": lambda: margin_histogram(RADII, torch.tensor([True, True, False])),
    "all wrong": lambda: margin_histogram(RADII, torch.zeros(3, dtype=torch.bool)),
    "margins of zero": lambda: margin_histogram(0.0 * RADII, torch.ones(3, dtype=torch.bool)),
    **{
        f"{drawing} of {name}": partial(DRAWINGS[drawing], searches)
        for drawing in DRAWINGS
        for name, searches in SAMPLES.items()
    },
}


@pytest.mark.parametrize("name", FIGURES)
def test_svg_is_well_formed_named_and_alone(name: str) -> None:
    figure = FIGURES[name]()
    root = ElementTree.fromstring(figure)
    assert root.tag == "svg"
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"].endswith(".")
    assert "width" not in root.attrib
    assert "http" not in figure
    assert "nan" not in figure.lower()


@pytest.mark.parametrize("name", FIGURES)
def test_same_figure_gives_the_same_text(name: str) -> None:
    torch.manual_seed(0)
    first = FIGURES[name]()
    torch.manual_seed(0)
    assert FIGURES[name]() == first


@pytest.mark.parametrize("name", FIGURES)
def test_theme_colours_are_left_to_the_page(name: str) -> None:
    figure = FIGURES[name]()
    assert not [colour for colour in THEME if colour in figure]
    assert "var(--muted)" in figure
    assert "#000000" not in figure


def test_certified_curve_describes_its_marks() -> None:
    label = ElementTree.fromstring(certified_curve(RADII, RADII < 0.5, TABLE)).attrib["aria-label"]
    assert "75.0% at 0, 50.0% at 0.25" in label


def test_coverage_is_described_at_threshold_zero() -> None:
    label = ElementTree.fromstring(coverage_figure(COVERAGE, 4)).attrib["aria-label"]
    assert "at 0, 3 of 4 samples are accepted and 1 of them are wrong" in label


def test_thresholds_are_marked_where_there_is_room_and_all_are_described() -> None:
    figure = coverage_figure(COVERAGE, 4, CHOICES)
    drawn = "".join(ElementTree.fromstring(figure).itertext())
    assert "99%" in drawn
    assert "99.9%" not in drawn
    label = ElementTree.fromstring(figure).attrib["aria-label"]
    assert label.endswith("wrong; 99% right above 0.4, 99.9% right above 0.41.")


def test_deviations_far_below_one_have_their_own_unit() -> None:
    assert "in units of 1e-8" in gradient_norm_histogram(1.0 + torch.tensor([[3e-8]]).double())
    assert "in units of 1e-1" in gradient_norm_histogram(torch.tensor([[1.25]]))


def test_margins_are_counted_by_right_and_wrong() -> None:
    figure = margin_histogram(RADII, torch.tensor([True, True, False]))
    assert "2 right" in figure
    assert "1 wrong" in figure


def test_the_median_of_two_margins_is_their_mean() -> None:
    figure = margin_histogram(torch.tensor([1.0, 3.0]).double(), torch.tensor([True, True]))
    assert "2 right predictions, median 2;" in figure


def test_a_deviation_is_rounded_up() -> None:
    figure = gradient_norm_histogram(1.0 + torch.tensor([[5.54e-7]]).double())
    assert "all within 5.6 × 10⁻⁷ of the promised 1" in figure


def test_of_lower_bounds_no_norm_is_promised() -> None:
    figure = gradient_norm_histogram(torch.tensor([[0.5]]), promised=False)
    assert "all within 0.5 of 1." in figure


def test_a_broken_certificate_lies_in_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []

    def keep(figure: Figure, *_: str) -> str:
        limits.extend(end for axes in figure.axes for end in (*axes.get_xlim(), *axes.get_ylim()))
        return ""

    monkeypatch.setattr(figures, "to_svg", keep)
    radius_scatter([made_search([0.5, 3.0], [1.0, 1.5])])
    assert min(limits[1::2]) >= 3.0


def test_descriptions_hold_the_numbers() -> None:
    searches = SAMPLES["both boxes"]
    ratios = ElementTree.fromstring(ratio_histogram(searches)).attrib["aria-label"]
    assert "without box 0.750 ± 0.250 over 2 samples" in ratios
    assert "in [0, 1] 0.500 ± 0.000 over 2 samples" in ratios
    described = ElementTree.fromstring(bars(searches)).attrib["aria-label"]
    assert "without box 0.0% at 36/255" in described
    assert "100.0% at 1" in described
