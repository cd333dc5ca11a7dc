"""The figures of a report, each as one SVG: curves of a run, histograms of its promises, and
certificates against found distances."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from torch import Tensor

from unitmargin.certificates.accuracy import certified_accuracies
from unitmargin.certificates.epsilons import epsilon_name
from unitmargin.certificates.tightness import Search, box_name, tightness
from unitmargin.reporting.distances import closest_by_box
from unitmargin.reporting.drawing import (
    BINS,
    BOXED,
    INK,
    MUTED,
    RIGHT,
    TEXT_SIZE,
    WRONG,
    canvas,
    histogram,
    label,
    legend,
    percent_axis,
    to_svg,
    whole_ticks,
)
from unitmargin.reporting.statistics import median
from unitmargin.reporting.wording import bound, spread
from unitmargin.training.train import EpochRecord

CURVE_POINTS = 400
"""Radii at which the certified-accuracy curve is evaluated: finer than a pixel of the figure."""

MANY_EPOCHS = 40
"""Above this, a curve is dense enough to be read without a dot an epoch."""

NARROWEST = 0.02
"""Least width of the ratio axis: an exact network has every ratio at 1."""

BAR_WIDTH = 0.36

EXACT = -17
"""Power of ten that stands for "no deviation at all": below one float64 ulp of 1."""


def certified_curve(
    radius: Float[Tensor, " batch"], right: Bool[Tensor, " batch"], table: Mapping[float, float]
) -> str:
    """Share of samples that are right with a radius above epsilon, against epsilon.

    Args:
        radius: certified radii.
        right: which predictions are right.
        table: certified accuracy by radius; those within the figure are marked.
    """
    largest = float(radius[right].max()) if bool(right.any()) else 0.0
    end = 1.04 * max(largest, min((epsilon for epsilon in table if epsilon > 0), default=1.0))
    epsilons = torch.linspace(0.0, end, CURVE_POINTS, dtype=torch.float64)
    shares = certified_accuracies(right, radius, epsilons).numpy()
    figure, (axes,) = canvas()
    axes.fill_between(epsilons.numpy(), shares, color=RIGHT, alpha=0.1, lw=0)
    axes.plot(epsilons.numpy(), shares, color=RIGHT, linewidth=2)
    marked = [epsilon for epsilon in table if epsilon <= end]
    heights = [table[epsilon] for epsilon in marked]
    axes.scatter(marked, heights, s=26, color=RIGHT, zorder=3, clip_on=False)
    axes.set_xlim(0.0, end)
    axes.set_ylim(0.0, 1.0)
    percent_axis(axes)
    label(axes, "radius ε", "right and certified beyond ε")
    points = ", ".join(f"{table[epsilon]:.1%} at {epsilon:.3g}" for epsilon in marked)
    return to_svg(figure, "certified-curve", f"Certified accuracy against the radius: {points}.")


def loss_curve(history: Sequence[EpochRecord]) -> str:
    """Mean training loss by epoch."""
    epochs, losses = [row.epoch for row in history], [row.loss for row in history]
    figure, (axes,) = canvas()
    axes.plot(epochs, losses, color=INK, linewidth=2, marker=_marker(epochs), markersize=4)
    _epoch_axis(axes, epochs)
    label(axes, "epoch", "training loss")
    text = f"Training loss over {len(epochs)} epochs, from {losses[0]:.3g} to {losses[-1]:.3g}."
    return to_svg(figure, "loss-curve", text)


def accuracy_curve(history: Sequence[EpochRecord], epsilon: str) -> str:
    """Clean accuracy and certified accuracy at ``epsilon`` by epoch."""
    epochs = [row.epoch for row in history if row.clean_accuracy is not None]
    clean = [row.clean_accuracy for row in history if row.clean_accuracy is not None]
    certified = [row.certified_accuracy for row in history if row.certified_accuracy is not None]
    figure, (axes,) = canvas()
    curves = (("clean", clean, MUTED), (f"certified at {epsilon}", certified, RIGHT))
    for name, values, colour in curves:
        marker = _marker(epochs)
        axes.plot(epochs, values, color=colour, label=name, lw=2, marker=marker, markersize=4)
    _epoch_axis(axes, epochs)
    percent_axis(axes)
    label(axes, "epoch", "test accuracy")
    legend(axes, loc="lower right")
    text = (
        f"Test accuracy by epoch; after the last one {clean[-1]:.1%} clean and "
        f"{certified[-1]:.1%} certified at {epsilon}."
    )
    return to_svg(figure, "accuracy-curve", text)


def gradient_norm_histogram(norms: Float[Tensor, "batch pairs"], promised: bool = True) -> str:
    """Histogram of pairwise gradient norms, as deviations from 1, which is promised or is not.

    The axis is in units of the power of ten just below the largest deviation, since deviations
    of 1e-8 cannot be told apart on an axis around 1.
    """
    deviations = norms.flatten().double() - 1.0
    largest = float(deviations.abs().max())
    exponent = max(math.floor(math.log10(largest)), EXACT) if largest > 0 else EXACT
    scaled = (deviations / 10.0**exponent).numpy()
    end = 1.1 * max(largest / 10.0**exponent, 1.0)
    figure, (axes,) = canvas()
    axes.hist(scaled, bins=BINS, range=(-end, end), color=RIGHT, rwidth=0.9)
    axes.axvline(0.0, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xlim(-end, end)
    label(axes, f"gradient norm − 1, in units of 1e{exponent}", "pairs of classes × samples")
    text = (
        f"Histogram of {len(scaled)} pairwise gradient norms: all within {bound(largest)} of "
        f"{'the promised 1' if promised else '1'}."
    )
    return to_svg(figure, "gradient-norms", text)


def margin_histogram(margins: Float[Tensor, " batch"], right: Bool[Tensor, " batch"]) -> str:
    """Histograms of the margins of right and of wrong predictions, one above the other."""
    end = 1.02 * max(float(margins.max()), 1e-12)
    figure, panels = canvas(rows=2)
    parts = ((right, RIGHT, "right"), (~right, WRONG, "wrong"))
    counts = []
    for axes, (mask, colour, name) in zip(panels, parts, strict=True):
        chosen = margins[mask].double()
        histogram(axes, chosen, (0.0, end), colour)
        middle = median(chosen)
        words = "" if middle is None else f", median {middle:.3g}"
        counts.append(f"{len(chosen)} {name} predictions{words}")
        title = f"{len(chosen):,} {name}"
        axes.set_title(title, color=colour, fontsize=TEXT_SIZE, loc="right", pad=2)
    label(panels[0], y="samples")
    label(panels[1], "margin of the predicted class", "samples")
    return to_svg(figure, "margins", f"Histograms of the margin: {'; '.join(counts)}.")


def radius_scatter(searches: Sequence[Search]) -> str:
    """Certified radius against the distance of the closest point found, one dot a sample."""
    figure, (axes,) = canvas()
    groups = [(search, search.distance[search.found]) for search in closest_by_box(searches)]
    ends = [
        max(float(distance.max()), float(search.radius[search.found].max()))
        for search, distance in groups
        if len(distance)
    ]
    end = 1.05 * max(ends, default=0.0) or 1.0
    axes.plot([0.0, end], [0.0, end], color=INK, linewidth=1, linestyle=(0, (4, 3)))
    counts = []
    for search, distance in groups:
        points = search.radius[search.found].numpy(), distance.numpy()
        name, colour = _style(box_name(search.box))
        axes.scatter(*points, s=10, alpha=0.6, linewidth=0, color=colour, label=name)
        counts.append(f"{name}, {len(distance)} samples")
    axes.set_xlim(0.0, end)
    axes.set_ylim(0.0, end)
    label(axes, "certified radius", "closest adversarial point")
    legend(axes, loc="upper left", handletextpad=0.1, markerscale=2.0)
    text = (
        "Certified radius against the distance of the closest adversarial point, which is never "
        f"below it on a sound certificate: {'; '.join(counts)}."
    )
    return to_svg(figure, "radius-scatter", text)


def ratio_histogram(searches: Sequence[Search]) -> str:
    """Histograms of certified radius / distance, one panel a box."""
    groups = closest_by_box(searches)
    ratios = [(search.radius / search.distance)[search.found] for search in groups]
    smallest = min([float(ratio.min()) for ratio in ratios if len(ratio)], default=1.0)
    start = max(0.0, min(smallest, 1.0 - NARROWEST))
    end = max([1.0, *(float(ratio.max()) for ratio in ratios if len(ratio))])
    figure, panels = canvas(rows=len(groups))
    described = []
    for axes, search, ratio in zip(panels, groups, ratios, strict=True):
        (name, colour), figures = _style(box_name(search.box)), tightness(search)
        mean = spread(figures.mean, figures.spread) if figures.n else "no sample"
        histogram(axes, ratio, (start, end), colour)
        axes.set_title(f"{name}: {mean}", color=colour, fontsize=TEXT_SIZE, loc="left", pad=4)
        label(axes, y="samples")
        described.append(f"{name} {mean} over {figures.n} samples")
    label(panels[-1], "certified radius / distance", "samples")
    text = f"Histograms of certified radius / distance: {'; '.join(described)}."
    return to_svg(figure, "ratio-histogram", text)


def false_positive_bars(rows: Sequence[Mapping[str, Any]]) -> str:
    """The ratio r of the false-positive analysis, one bar a radius and box.

    Args:
        rows: box, epsilon and precision, by box and then by epsilon.
    """
    boxes = list(dict.fromkeys(row["box"] for row in rows))
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows))
    figure, (axes,) = canvas()
    places = np.arange(len(epsilons))
    described = []
    for number, box in enumerate(boxes):
        shares = [row["precision"] for row in rows if row["box"] == box]
        heights = [0.0 if share is None else share for share in shares]
        shift = (number - 0.5 * (len(boxes) - 1)) * BAR_WIDTH
        name, colour = _style(box)
        axes.bar(places + shift, heights, 0.92 * BAR_WIDTH, color=colour, label=name)
        for place, share in zip(places, shares, strict=True):
            if share is None:
                axes.text(place + shift, 0.02, "–", ha="center", color=MUTED, fontsize=TEXT_SIZE)
        shown = ["no sample" if share is None else f"{share:.1%}" for share in shares]
        pairs = zip(shown, epsilons, strict=True)
        described.append(f"{name} " + ", ".join(f"{a} at {epsilon_name(b)}" for a, b in pairs))
    names = [epsilon_name(epsilon) for epsilon in epsilons]
    axes.set_xticks(places, names, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_ylim(0.0, 1.0)
    percent_axis(axes)
    label(axes, "radius ε", "r = TP / (TP + FP)")
    legend(axes, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(boxes))
    return to_svg(figure, "false-positives", f"False-positive analysis: {'; '.join(described)}.")


def _epoch_axis(axes: Axes, epochs: Sequence[int]) -> None:
    axes.set_xlim(epochs[0] - 0.5, epochs[-1] + 0.5)
    whole_ticks(axes.xaxis)


def _marker(epochs: Sequence[int]) -> str | None:
    return "o" if len(epochs) <= MANY_EPOCHS else None


def _style(box: str) -> tuple[str, str]:
    """Name and colour of what was searched in a box."""
    return ("without box", RIGHT) if box == box_name(None) else (f"in {box}", BOXED)
