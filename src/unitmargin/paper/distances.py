"""The figures of LB/MAP: a scatter against the distance, and distributions, network by network."""

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unitmargin.certificates.tightness import tightness
from unitmargin.paper.canvas import panels
from unitmargin.paper.closest import CASES, CLOSEST, Found, case_name, closest_points, units
from unitmargin.paper.conditions import NOT_RUN
from unitmargin.paper.networks import PEERS
from unitmargin.reporting.drawing import CLASS_COLOURS, INK, MUTED, TEXT_SIZE, label, legend
from unitmargin.runs.folder import RunFolder

SCATTERED = (*PEERS.values(), "UGNN+MaxMin+updB")
"""Networks of the paper's scatter; its distributions have the same peers."""

DISTRIBUTED = {"norm": "UGNN+OPLU+updU", "raw": "UGNN+MaxMin+updB"}
"""The UGNN of the paper's distributions, by input."""

BINS = 60
RATIO_END = 1.02
"""End of the axis of ratios, which are at most 1 unless a certificate is broken, and room for the
line there."""

MOST_DOTS = 3000
"""Dots a network: more hide each other."""

SCATTER_CAPTION = (
    "LB/MAP against MAP, one dot a sample that is right and whose closest point was found; up to "
    f"{MOST_DOTS} a network, and all above 1. At 1 the certificate is the distance. The paper's "
    "figure has norm inputs without box. " + CLOSEST
)

DISTRIBUTION_CAPTION = (
    "Distribution of LB/MAP over the right samples, one histogram a network, each of area 1; the "
    "legend has mean and number of samples. The paper's panels have Iterative Penalty without box "
    "and cross-entropy DDN in it. " + CLOSEST
)


def scatter_figure(runs: Sequence[RunFolder]) -> tuple[Figure, str]:
    """``fig:scatter-IP-norm``, and the same for raw inputs beside it."""
    figure, axes = panels(2, width=560.0, height=330.0)
    for panel, given in zip(axes, ("norm", "raw"), strict=True):
        found = chosen(closest_points(runs, given, boxed=False), SCATTERED)
        for network, colour in zip(found, colours(found), strict=True):
            search = network.search
            distance = search.distance[search.found]
            ratio = search.radius[search.found] / distance
            drawn = torch.arange(len(ratio)) % (1 + len(ratio) // MOST_DOTS) == 0
            drawn |= ratio > 1.0  # a broken certificate
            distance, ratio = distance[drawn], ratio[drawn]
            panel.scatter(
                distance.numpy(), ratio.numpy(), s=7, alpha=0.5, linewidth=0, rasterized=True,
                color=colour, label=network.name,
            )  # fmt: skip
        panel.axhline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        panel.set_ylim(0.0, 1.05 * max((1.0, *map(_largest_ratio, found))))
        panel.set_xlim(left=0.0)
        finish(
            panel,
            found,
            f"LB / MAP against MAP: {case_name(given, False)}",
            f"MAP, in {units(found)}",
            "LB / MAP",
        )
    return figure, SCATTER_CAPTION


def distribution_figure(runs: Sequence[RunFolder]) -> tuple[Figure, str]:
    """``fig:dist-multi``: norm and raw inputs, without box and within."""
    figure, axes = panels(2, rows=2, width=580.0, height=270.0)
    for panel, (given, boxed) in zip(axes, CASES, strict=True):
        found = chosen(closest_points(runs, given, boxed), (*PEERS.values(), DISTRIBUTED[given]))
        end = max((RATIO_END, *map(_largest_ratio, found)))
        for network, colour in zip(found, colours(found), strict=True):
            search, figures = network.search, tightness(network.search)
            ratio = (search.radius / search.distance)[search.found].numpy()
            words = f"{network.name}\nmean {figures.mean:.3f}, {figures.n:,} samples"
            shape: dict[str, Any] = {"bins": BINS, "range": (0.0, end), "density": True}
            panel.hist(ratio, color=colour, alpha=0.35, label=words, **shape)
            panel.hist(ratio, histtype="step", color=colour, linewidth=1.2, **shape)
        panel.set_xlim(0.0, end)
        panel.set_yticks([])
        finish(panel, found, f"LB / MAP: {case_name(given, boxed)}", "LB / MAP", "density")
    return figure, DISTRIBUTION_CAPTION


def _largest_ratio(network: Found) -> float:
    """Above 1 where a certificate is broken, and never outside of a figure."""
    search = network.search
    return float((search.radius / search.distance)[search.found].max())


def chosen(found: Sequence[Found], models: Sequence[str]) -> list[Found]:
    """The networks of the paper's figure; any other UGNN in place of one that was not run."""
    kept = [network for network in found if network.model in models]
    others = [network for network in found if network.model.startswith("UGNN")]
    missing = not any(network.model.startswith("UGNN") for network in kept)
    stand_in = others[0].model if missing and others else None
    return [*kept, *(network for network in others if network.model == stand_in)]


def colours(found: Sequence[Found]) -> list[str]:
    """One colour a family, the same in all panels, and another one for each further network of
    it."""
    families = [*PEERS.values(), "UGNN"]
    own = dict(zip(families, CLASS_COLOURS, strict=False))
    spare = itertools.cycle(CLASS_COLOURS[len(families) :])
    return [
        own.pop(family, "") or next(spare)
        for family in (next(filter(network.model.startswith, families)) for network in found)
    ]


def finish(panel: Axes, found: Sequence[Found], title: str, x: str, y: str) -> None:
    """Name what a panel shows, or say that nothing was run."""
    panel.set_title(title, color=INK, fontsize=TEXT_SIZE, loc="left")
    label(panel, x, y)
    if found:
        place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        key = legend(panel, TEXT_SIZE - 3, markerscale=2.5, **place)
        for handle in filter(None, key.legend_handles):
            handle.set_alpha(1.0)
    else:
        panel.text(0.5, 0.5, NOT_RUN, ha="center", color=MUTED, transform=panel.transAxes)
