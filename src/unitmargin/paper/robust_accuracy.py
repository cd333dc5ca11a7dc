"""The figures of certified accuracy by radius: UGNN against the peers, and the UGNNs alone."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unitmargin.certificates.accuracy import EPSILONS, certified_accuracies
from unitmargin.paper.accuracy import ACCURACY, paper_row, percent
from unitmargin.paper.canvas import panels
from unitmargin.paper.conditions import NOT_RUN, budget, run_table
from unitmargin.paper.groups import row_names, same_trainings, seeds
from unitmargin.paper.layout import Table
from unitmargin.paper.networks import PAPER_SIDE, PEERS, row_recipe
from unitmargin.paper.target import Output, Target
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

LARGE = ("UGNN+MaxMin+updB", "raw", 256)
"""The network that the paper sets against its peers, in its words the most accurate one; its table
has updU at 78.5 % and updB at 78.4 %."""

LARGEST_LEGEND = 6
"""Networks named inside a panel; more are named beside it, where no curve runs through them."""

EPSILON_END = 1.5
EPSILON_POINTS = 301

RADII = tuple(f"{epsilon:.3f}" for epsilon in EPSILONS)
TABLE_HEADER = ("Model", "Side", "Input", "Space", *RADII, "Budget", "Runs")

SPREAD = " Mean ± standard deviation over seeds where there are several."

Band = tuple[str, Float64[np.ndarray, "seeds epsilons"]]
"""Name of a network, and its certified accuracy at each radius of the axis, once a seed."""


def robust_accuracy(runs: Sequence[RunFolder]) -> Output:
    """``fig:rob-accuracy``, ``fig:robust-lineplot`` and their numbers.

    The first figure has two panels: radii in the space of the network's own input, as in the
    paper, where 256 x 256 images stand beside 32 x 32 ones, and radii in the original pixels, where
    all networks face the same perturbation.

    Args:
        runs: those that its target takes.
    """
    peers = [run for run in runs if paper_row(run)[0] in PEERS.values()]
    large = [run for run in runs if paper_row(run) == LARGE]
    small = [run for run in runs if paper_row(run)[2] == PAPER_SIDE]
    figures = {
        "rob-accuracy": (against_peers([*large, *peers]), CAPTION_PEERS + BANDS),
        "robust-lineplot": (at_original_size(small), CAPTION_SMALL + BANDS),
    }
    return Output([accuracy_by_radius([*large, *small]), *run_table([*large, *small])], figures)


CAPTION_PEERS = (
    "Share of test images that are right with a certified radius above ε. Left: ε in the space of "
    "each network's own input; the peers see the 256 x 256 image through the choice of every "
    "eighth pixel, which is 1-Lipschitz, so their radii hold there too. Right: ε in the original "
    "32 x 32 pixels; repeating each of them 8 x 8 times multiplies distances by 8."
)

BANDS = " A line is the mean over seeds; where there are several, a band shows what they span."

CAPTION_SMALL = (
    "Share of test images that are right with a certified radius above ε, for 32 x 32 raw inputs: "
    "UGNNs with the unbounded head, with the bounded one, and for all networks relative to their "
    "clean accuracy."
)


def against_peers(runs: Sequence[RunFolder]) -> Figure:
    """Certified accuracy in both spaces, the large UGNN and the peers."""
    figure, (own, original) = panels(2)
    groups = same_trainings(runs)
    names = legend_names(groups)
    pixels = [float(group[0].recipe().data.upsample) for group in groups]
    for axes, words, title, factors in (
        (own, "ε in the network's input", "own inputs", [1.0] * len(groups)),
        (original, "ε in original pixels", "original pixels", pixels),
    ):
        lines = bands(names, groups, factors)
        draw(axes, lines, names, words, f"Certified accuracy, {title}")
    return figure


def at_original_size(runs: Sequence[RunFolder]) -> Figure:
    """Certified accuracy of both heads, and relative to the clean one for all networks."""
    figure, (unbounded, bounded, relative) = panels(3)
    groups = same_trainings(runs)
    names = legend_names(groups)
    found = bands(names, groups, [1.0] * len(groups))
    for axes, head in ((unbounded, "updU"), (bounded, "updB")):
        chosen = [
            band
            for group, band in zip(groups, found, strict=True)
            if paper_row(group[0])[0].endswith(head)
        ]
        draw(axes, chosen, names, "ε", f"Certified accuracy, UGNNs with {head}")
    clean = [np.stack([_clean(run) for run in group]) for group in groups]
    drops = [
        (name, lines / shares)
        for (name, lines), shares in zip(found, clean, strict=True)
        if shares.all()
    ]
    draw(relative, drops, names, "ε", "Certified / clean accuracy")
    return figure


def draw(axes: Axes, bands: Sequence[Band], names: Sequence[str], epsilon: str, title: str) -> None:
    """One line a network, with what its seeds span, or the words "not run"; a name has one colour
    in all panels."""
    for network, lines in bands:
        number = names.index(network)
        colour = CLASS_COLOURS[number % len(CLASS_COLOURS)]
        style = "-" if number < len(CLASS_COLOURS) else "--"
        axes.plot(epsilons(), lines.mean(0), style, color=colour, label=network, linewidth=1.6)
        if len(lines) > 1:
            ends = lines.min(0), lines.max(0)
            axes.fill_between(epsilons(), *ends, color=colour, alpha=0.2, linewidth=0)
    if bands:
        crowded = len(bands) > LARGEST_LEGEND
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if crowded else {}
        legend(axes, TEXT_SIZE - 4, **place)
    else:
        axes.text(0.5, 0.5, NOT_RUN, ha="center", color=MUTED, transform=axes.transAxes)
    axes.set_title(title, color=INK, fontsize=TEXT_SIZE, loc="left")
    axes.set_xlim(0.0, EPSILON_END)
    axes.set_ylim(0.0, 1.0)
    percent_axis(axes)
    label(axes, epsilon)


def epsilons() -> Float64[np.ndarray, " epsilons"]:
    """Radii at which the curves are drawn."""
    return np.linspace(0.0, EPSILON_END, EPSILON_POINTS)


def curve(run: RunFolder, factor: float) -> Float64[np.ndarray, " epsilons"]:
    """Share of test images right with a certified radius above ``factor`` times each epsilon."""
    certificates = run.certificates()
    radii = torch.from_numpy(factor * epsilons())
    shares = certified_accuracies(certificates.right, certificates.radius, radii)
    return np.asarray(shares.numpy(), dtype=np.float64)


def _clean(run: RunFolder) -> Float64[np.ndarray, " 1"]:
    """Share of test images that are right, whether anything is certified around them or not."""
    return np.array([run.certificates().clean_accuracy])


def bands(
    names: Sequence[str], groups: Sequence[Sequence[RunFolder]], factors: Sequence[float]
) -> list[Band]:
    """The curves of each group of runs by its name, at radii times its factor."""
    return [
        (name, np.stack([curve(run, factor) for run in group]))
        for name, group, factor in zip(names, groups, factors, strict=True)
    ]


def legend_names(groups: Sequence[Sequence[RunFolder]]) -> list[str]:
    """The name of each group of runs: network, size if it is not the original one, what tells it
    from another group of that name, seeds."""
    rows = [paper_row(group[0]) for group in groups]
    sized = [
        model if side == PAPER_SIDE else f"{model}, {side} x {side}" for model, _, side in rows
    ]
    return [
        f"{name}, seed{'s' if len(group) > 1 else ''} {seeds(group)}"
        for name, group in zip(row_names(sized, groups), groups, strict=True)
    ]


def accuracy_by_radius(runs: Sequence[RunFolder]) -> Table:
    """The numbers of the curves at the usual radii, in both spaces where they differ."""
    rows = []
    for group in same_trainings(runs):
        model, given, side = paper_row(group[0])
        certificates = [run.certificates() for run in group]
        upsample = group[0].recipe().data.upsample
        spaces = [("own input", 1.0)]
        spaces += [("original pixels", float(upsample))] if upsample > 1 else []
        for space, factor in spaces:
            cells = [
                percent([each.certified_accuracy(factor * epsilon) for each in certificates])
                for epsilon in EPSILONS
            ]
            made = budget(group), ", ".join(run.path.name for run in group)
            rows.append((model, str(side), given, space, *cells, *made))
    caption = "Certified accuracy by radius, in percent: the numbers of the two figures." + SPREAD
    return Table("tab:robust-accuracy", caption, TABLE_HEADER, [rows], RADII)


def _takes(run: RunFolder) -> bool:
    model, given, side = paper_row(run)
    small = side == PAPER_SIDE and given == "raw" and bool(model)
    return small or (model, given, side) == LARGE


ROBUST_ACCURACY = Target(
    recipes=(*(name for name in ACCURACY.recipes if name.endswith("-raw")), row_recipe(*LARGE)),
    searches=False,
    write=robust_accuracy,
    takes=_takes,
)
