"""Figures of certificates against distances: they stand alone and survive extreme data."""

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

import pytest
from searches import made_search

from unitmargin.reporting.distance_figures import (
    false_positive_bars,
    radius_scatter,
    ratio_histogram,
)
from unitmargin.reporting.distances import summarize_searches
from unitmargin.reporting.drawing import THEME

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
DRAWINGS: dict[str, Callable[..., str]] = {
    "scatter": radius_scatter,
    "ratios": ratio_histogram,
    "bars": lambda searches: false_positive_bars(summarize_searches(searches)["false_positives"]),
}


@pytest.mark.parametrize("samples", SAMPLES)
@pytest.mark.parametrize("drawing", DRAWINGS)
def test_svg_is_well_formed_and_follows_the_page(drawing: str, samples: str) -> None:
    figure = DRAWINGS[drawing](SAMPLES[samples])
    root = ElementTree.fromstring(figure)
    assert root.tag == "svg"
    assert root.attrib["aria-label"].endswith(".")
    assert "nan" not in figure.lower()
    assert not [colour for colour in THEME if colour in figure]
    assert DRAWINGS[drawing](SAMPLES[samples]) == figure


def test_descriptions_hold_the_numbers() -> None:
    searches = SAMPLES["both boxes"]
    ratios = ElementTree.fromstring(ratio_histogram(searches)).attrib["aria-label"]
    assert "without box 0.750 ± 0.250 over 2 samples" in ratios
    assert "in [0; 1] 0.500 ± 0.000 over 2 samples" in ratios
    bars = ElementTree.fromstring(DRAWINGS["bars"](searches)).attrib["aria-label"]
    assert "without box 0.0% at 36/255" in bars
    assert "100.0% at 1" in bars
