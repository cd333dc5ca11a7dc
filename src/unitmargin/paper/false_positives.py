"""The false-positive analysis over all networks at hand: bars and their numbers."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unitmargin.certificates.epsilons import epsilon_name
from unitmargin.paper.canvas import panels
from unitmargin.paper.closest import (
    CASES,
    CLOSEST,
    SPACES,
    Found,
    case_name,
    closest_points,
    units,
)
from unitmargin.paper.conditions import NOT_RUN, NOTHING
from unitmargin.paper.layout import Row, Table
from unitmargin.reporting.distances import false_positives
from unitmargin.reporting.drawing import (
    CLASS_COLOURS,
    INK,
    MUTED,
    TEXT_SIZE,
    label,
    legend,
    percent_axis,
)
from unitmargin.runs.folder import RunFolder

EPSILONS = (36 / 255, 72 / 255, 108 / 255, 0.5, 1.0)
"""Radii of the bars; the paper's source does not hold its own."""

GROUP_WIDTH = 0.84
"""Of the bars at one radius, in units of the distance between two radii."""

HATCH = "////"
"""Of networks beyond the last colour."""

HEADER = ("Model", "Input", "Box", "Space", "Samples", *map(epsilon_name, EPSILONS))

CAPTION = (
    "False-positive analysis: of the right samples whose certificate does not exceed ε, the share "
    "r = TP / (TP + FP) that has an adversarial point within ε; a dash where every certificate "
    "exceeds it. The longer a bar, the fewer robust predictions are discarded. ε is in the units "
    "of the space in which a row is measured. " + CLOSEST
)


def false_positive_figure(runs: Sequence[RunFolder]) -> tuple[Figure, str]:
    """``fig:false-postive`` (the paper's spelling), one panel an input and box."""
    figure, axes = panels(2, rows=2, width=470.0, height=250.0)
    cases = [closest_points(runs, given, boxed) for given, boxed in CASES]
    names = list(dict.fromkeys(network.name for found in cases for network in found))
    for panel, (given, boxed), found in zip(axes, CASES, cases, strict=True):
        draw(panel, found, names)
        title = f"r, the share of true alarms: {case_name(given, boxed)}"
        panel.set_title(title, color=INK, fontsize=TEXT_SIZE, loc="left")
        panel.set_xticks(range(len(EPSILONS)), [epsilon_name(epsilon) for epsilon in EPSILONS])
        panel.set_ylim(0.0, 1.0)
        percent_axis(panel)
        label(panel, f"ε, in {units(found)}", "r = TP / (TP + FP)")
    return figure, CAPTION


def draw(panel: Axes, found: Sequence[Found], names: Sequence[str]) -> None:
    """One group of bars a radius, one bar a network; a name has one colour in all panels."""
    width = GROUP_WIDTH / max(len(found), 1)
    for number, network in enumerate(found):
        shares = precisions(network)
        places = np.arange(len(EPSILONS)) + (number - 0.5 * (len(found) - 1)) * width
        colour = names.index(network.name)
        hatch = "" if colour < len(CLASS_COLOURS) else HATCH
        panel.bar(
            places, [share or 0.0 for share in shares], 0.94 * width, label=network.name,
            color=CLASS_COLOURS[colour % len(CLASS_COLOURS)], hatch=hatch, edgecolor="white",
            linewidth=0,
        )  # fmt: skip
        for place, share in zip(places, shares, strict=True):
            if share is None:
                panel.text(place, 0.02, NOTHING, ha="center", color=MUTED, fontsize=TEXT_SIZE - 3)
    if found:
        legend(panel, TEXT_SIZE - 4, loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        panel.text(0.5, 0.5, NOT_RUN, ha="center", color=MUTED, transform=panel.transAxes)


def precisions(network: Found) -> list[float | None]:
    """r of a network at each radius; None where there is no positive."""
    return [false_positives(network.search, epsilon)["precision"] for epsilon in EPSILONS]


def false_positive_table(runs: Sequence[RunFolder]) -> Table:
    """The numbers of the bars, in percent."""
    rows: list[list[Row]] = []
    for given, boxed in CASES:
        rows.append([])
        for network in closest_points(runs, given, boxed):
            shares = precisions(network)
            cells = [NOTHING if share is None else f"{100.0 * share:.1f}" for share in shares]
            samples = str(int(network.search.found.sum()))
            where = (given, "yes" if boxed else "no", SPACES[network.search.space])
            rows[-1].append((network.name, *where, samples, *cells))
    return Table("tab:false-positives", CAPTION + " In percent.", HEADER, rows, HEADER[4:])
