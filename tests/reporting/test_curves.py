"""Curves of many runs: SVG that stands alone, with a style of its own for each run."""

import xml.etree.ElementTree as ElementTree

import pytest
from compared import made_run

from unitmargin.reporting.comparison import Compared, common_epsilons, read_compared
from unitmargin.reporting.curves import accuracy_curves, style, training_curves
from unitmargin.reporting.drawing import THEME


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Compared]:
    path = tmp_path_factory.mktemp("runs")
    radii = {"a": [0.5, 1.0], "$b_i$ <c>": [2.0, -1.0], "none right": [-1.0, -1.0]}
    epochs = {"a": 3, "$b_i$ <c>": 1, "none right": 0}
    return read_compared(
        [
            made_run(path / str(number), values, name, epochs=epochs[name])
            for number, (name, values) in enumerate(radii.items())
        ]
    )


def test_figures_are_well_formed_named_and_alone(runs: list[Compared]) -> None:
    figures = [
        accuracy_curves(runs, common_epsilons(runs)),
        accuracy_curves(runs[2:], common_epsilons(runs[2:])),
        training_curves(runs, "clean_accuracy", "clean accuracy"),
    ]
    for figure in figures:
        assert figure is not None
        root = ElementTree.fromstring(figure)
        assert root.attrib["role"] == "img"
        assert root.attrib["aria-label"].endswith(".")
        assert "http" not in figure
        assert "nan" not in figure.lower()
        assert not [colour for colour in THEME if colour in figure]


def test_descriptions_hold_the_numbers(runs: list[Compared]) -> None:
    figure = training_curves(runs, "certified_accuracy", "certified accuracy")
    assert figure is not None
    label = ElementTree.fromstring(figure).attrib["aria-label"]
    assert "a 60.0% after 3, $b_i$ <c> 40.0% after 1." in label
    assert "none right" not in label
    curve = accuracy_curves(runs, common_epsilons(runs))
    assert "none right 0.0%" in ElementTree.fromstring(curve).attrib["aria-label"]


def test_without_a_history_there_is_no_figure(runs: list[Compared]) -> None:
    assert training_curves(runs[2:], "clean_accuracy", "clean accuracy") is None


def test_twenty_runs_have_twenty_styles() -> None:
    assert len({style(number) for number in range(20)}) == 20
