"""The figures of certified accuracy by radius: UGNN against the peers, and the UGNNs alone."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unitmargin.certificates.accuracy import EPSILONS, certified_accuracies
from unitmargin.paper.accuracy import ACCURACY, paper_row
from unitmargin.paper.canvas import panels
from unitmargin.paper.conditions import NOT_RUN, budget, run_table
from unitmargin.paper.layout import Table
from unitmargin.paper.networks import PAPER_SIDE, PEERS, row_recipe
from unitmargin.paper.target import Output, Target
from unitmargin.reporting.drawing import (
    CLASS_COLOURS,
    MUTED,
    TEXT_SIZE,
    label,
    legend,
    percent_axis,
)
from unitmargin.runs.folder import RunFolder

LARGE = ("UGNN+MaxMin+updB", "raw", 256)
"""The network that the paper sets against its peers: the most accurate one."""

LARGEST_LEGEND = 6
"""Networks named inside a panel; more are named beside it, where no curve runs through them."""

EPSILON_END = 1.5
EPSILON_POINTS = 301

TABLE_HEADER = ("Model", "Side", "Input", "Space", *(f"{e:.3f}" for e in EPSILONS), "Budget", "Run")

Curve = tuple[str, Float64[np.ndarray, " epsilons"]]
"""Name of a network, and the certified accuracy at each radius of the axis."""


def robust_accuracy(runs: Sequence[RunFolder]) -> Output:
    """``fig:rob-accuracy``, ``fig:robust-lineplot`` and their numbers.

    The first figure has two panels: radii in the space of the network's own input, as in the
    paper, where 256 x 256 images stand beside 32 x 32 ones, and radii in the original pixels, where
    all networks face the same perturbation.
    """
    raw = [run for run in runs if paper_row(run)[0] and paper_row(run)[1] == "raw"]
    peers = [run for run in raw if paper_row(run)[0] in PEERS.values()]
    large = [run for run in raw if paper_row(run) == LARGE]
    small = [run for run in raw if paper_row(run)[2] == PAPER_SIDE]
    figures = {
        "rob-accuracy": (against_peers([*large, *peers]), CAPTION_PEERS),
        "robust-lineplot": (at_original_size(small), CAPTION_SMALL),
    }
    return Output([accuracy_by_radius([*large, *small]), *run_table([*large, *small])], figures)


CAPTION_PEERS = (
    "Share of test images that are right with a certified radius above ε. Left: ε in the space of "
    "each network's own input; the peers see the 256 x 256 image through the choice of every "
    "eighth pixel, which is 1-Lipschitz, so their radii hold there too. Right: ε in the original "
    "32 x 32 pixels; repeating each of them 8 x 8 times multiplies distances by 8."
)

CAPTION_SMALL = (
    "Share of test images that are right with a certified radius above ε, for 32 x 32 raw inputs: "
    "UGNNs with the unbounded head, with the bounded one, and for all networks relative to their "
    "clean accuracy."
)


def against_peers(runs: Sequence[RunFolder]) -> Figure:
    """Certified accuracy in both spaces, the large UGNN and the peers."""
    figure, (own, original) = panels(2)
    draw(own, [(name(run), curve(run, 1.0)) for run in runs], "ε, in the network's input")
    scaled = [(name(run), curve(run, float(run.recipe().data.upsample))) for run in runs]
    draw(original, scaled, "ε, in the original pixels")
    return figure


def at_original_size(runs: Sequence[RunFolder]) -> Figure:
    """Certified accuracy of both heads, and relative to the clean one for all networks."""
    figure, (unbounded, bounded, relative) = panels(3)
    for axes, head in ((unbounded, "updU"), (bounded, "updB")):
        chosen = [run for run in runs if paper_row(run)[0].endswith(head)]
        draw(axes, [(name(run), curve(run, 1.0)) for run in chosen], f"ε ({head})")
    curves = [(name(run), curve(run, 1.0)) for run in runs]
    drops = [(network, line / line[0]) for network, line in curves if line[0] > 0]
    draw(relative, drops, "ε, relative to ε = 0")
    return figure


def draw(axes: Axes, curves: Sequence[Curve], epsilon: str) -> None:
    """One line a network, or the words "not run"."""
    for number, (network, line) in enumerate(curves):
        colour = CLASS_COLOURS[number % len(CLASS_COLOURS)]
        style = "-" if number < len(CLASS_COLOURS) else "--"
        axes.plot(epsilons(), line, style, color=colour, label=network, linewidth=1.6)
    if curves:
        crowded = len(curves) > LARGEST_LEGEND
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if crowded else {}
        legend(axes, TEXT_SIZE - 4, **place)
    else:
        axes.text(0.5, 0.5, NOT_RUN, ha="center", color=MUTED, transform=axes.transAxes)
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


def name(run: RunFolder) -> str:
    """The run in a legend: network, size if it is not the original one, seed."""
    model, _, side = paper_row(run)
    size = "" if side == PAPER_SIDE else f", {side} x {side}"
    return f"{model}{size}, seed {run.recipe().training.seed}"


def accuracy_by_radius(runs: Sequence[RunFolder]) -> Table:
    """The numbers of the curves at the usual radii, in both spaces where they differ."""
    rows = []
    for run in runs:
        model, given, side = paper_row(run)
        certificates, upsample = run.certificates(), run.recipe().data.upsample
        spaces = [("own input", 1.0)]
        spaces += [("original pixels", float(upsample))] if upsample > 1 else []
        for space, factor in spaces:
            shares = [certificates.certified_accuracy(factor * epsilon) for epsilon in EPSILONS]
            cells = [f"{100.0 * share:.1f}" for share in shares]
            rows.append((model, str(side), given, space, *cells, budget(run), run.path.name))
    caption = "Certified accuracy by radius, in percent: the numbers of the two figures."
    return Table("tab:robust-accuracy", caption, TABLE_HEADER, [rows], TABLE_HEADER[4:-2])


ROBUST_ACCURACY = Target(
    recipes=(*(name for name in ACCURACY.recipes if name.endswith("-raw")), row_recipe(*LARGE)),
    searches=False,
    write=robust_accuracy,
)
