"""Figures of LB/MAP: what is drawn, and what is said where nothing was run."""

import itertools
from pathlib import Path

import pytest
from certified import certified, write_made_searches
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from searches import made_search

from unitmargin.paper.closest import closest_points
from unitmargin.paper.conditions import NOT_RUN
from unitmargin.paper.distances import (
    MOST_DOTS,
    chosen,
    colours,
    distribution_figure,
    scatter_figure,
)
from unitmargin.paper.false_positives import false_positive_figure
from unitmargin.runs.folder import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = certified(tmp_path, "paper/ugnn-abs-updb-raw", [1.0, 0.4])
    search = made_search([1.0, 0.4], [2.0, 0.5])
    search.label[:] = 1
    write_made_searches(folder, [search])
    return folder


def texts(figure: Figure) -> list[list[str]]:
    return [[text.get_text() for text in axes.texts] for axes in figure.axes]


def test_dots_are_ratios_against_distances(run: RunFolder) -> None:
    figure, _ = scatter_figure([run])
    norm, raw = figure.axes
    assert texts(figure) == [[NOT_RUN], []]
    assert raw.collections[0].get_offsets().tolist() == [[2.0, 0.5], [0.5, 0.8]]
    assert raw.get_title(loc="left") == "LB / MAP against MAP: raw inputs, without box"
    assert norm.collections == [] or len(norm.collections) == 0


def test_a_broken_certificate_lies_in_both_figures(tmp_path: Path) -> None:
    folder = certified(tmp_path, "paper/ugnn-abs-updb-raw", [0.5, 3.0])
    search = made_search([0.5, 3.0], [1.0, 1.5])
    search.label[:] = 1
    write_made_searches(folder, [search])
    scatter, _ = scatter_figure([folder])
    assert scatter.axes[1].get_ylim()[1] >= 2.0
    distribution, _ = distribution_figure([folder])
    panel = distribution.axes[2]
    assert panel.get_xlim()[1] >= 2.0
    heights = [patch.get_height() for patch in panel.patches if isinstance(patch, Rectangle)]
    assert sum(height > 0 for height in heights) == 2


def test_of_many_dots_the_broken_ones_are_drawn(tmp_path: Path) -> None:
    count = 2 * MOST_DOTS + 1
    radii = [0.5] * count
    radii[1] = 2.0
    folder = certified(tmp_path, "paper/ugnn-abs-updb-raw", radii)
    search = made_search(radii, [1.0] * count)
    search.label[:] = 1
    write_made_searches(folder, [search])
    dots = scatter_figure([folder])[0].axes[1].collections[0].get_offsets()
    assert len(dots) <= MOST_DOTS + 1
    assert max(ratio for _, ratio in dots.tolist()) == 2.0


def test_another_ugnn_takes_the_place_of_the_papers(run: RunFolder) -> None:
    figure, _ = distribution_figure([run])
    legend = figure.axes[2].get_legend()
    assert legend is not None
    (words,) = [text.get_text() for text in legend.get_texts()]
    assert words == "UGNN+Abs+updB\nmean 0.650, 2 samples"
    assert texts(figure) == [[NOT_RUN], [NOT_RUN], [], [NOT_RUN]]


def test_two_trainings_of_a_network_have_two_colours(tmp_path: Path) -> None:
    runs = []
    for row, epochs in itertools.product(("resnet9-raw", "ugnn-abs-updb-raw"), (3, 9)):
        path = tmp_path / f"{row}-{epochs}"
        run = certified(path, f"paper/{row}", [1.0], training={"epochs": epochs})
        search = made_search([1.0], [2.0])
        search.label[:] = 1
        write_made_searches(run, [search])
        runs.append(run)
    found = chosen(closest_points(runs, "raw", boxed=False), ("ResNet9", "UGNN+MaxMin+updB"))
    assert [network.name for network in found] == [
        "ResNet9, 3 of 200 epochs",
        "ResNet9, 9 of 200 epochs",
        "UGNN+Abs+updB, 3 of 300 epochs",
        "UGNN+Abs+updB, 9 of 300 epochs",
    ]
    assert len(set(colours(found))) == 4
    assert colours(found)[0] == colours(found[:1])[0] == colours([found[3], found[0]])[1]


def test_bars_are_precisions(run: RunFolder) -> None:
    figure, _ = false_positive_figure([run])
    heights = [bar.get_height() for bar in figure.axes[2].patches]
    assert heights == [0.0, 0.0, 0.0, 1.0, 0.5]
    assert texts(figure) == [[NOT_RUN], [NOT_RUN], ["–", "–"], [NOT_RUN]]


def test_without_runs_all_panels_say_so() -> None:
    for figure, _ in (scatter_figure([]), distribution_figure([]), false_positive_figure([])):
        assert {text for panel in texts(figure) for text in panel} == {NOT_RUN}
