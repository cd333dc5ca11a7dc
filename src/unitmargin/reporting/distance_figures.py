"""The figures of certificates against found distances, each as one SVG."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unitmargin.certificates.tightness import Search, box_name, tightness
from unitmargin.reporting.distances import closest_by_box
from unitmargin.reporting.drawing import (
    BOXED,
    INK,
    MUTED,
    RIGHT,
    TEXT_SIZE,
    canvas,
    label,
    percent_axis,
    to_svg,
    whole_ticks,
)
from unitmargin.reporting.wording import epsilon_name, spread

BINS = 40

NARROWEST = 0.02
"""Least width of the ratio axis: an exact network has every ratio at 1."""

BAR_WIDTH = 0.36


def radius_scatter(searches: Sequence[Search]) -> str:
    """Certified radius against the distance of the closest point found, one dot a sample."""
    figure, (axes,) = canvas()
    groups = closest_by_box(searches)
    end = 1.05 * max([_largest(search) for search in groups], default=0.0) or 1.0
    axes.plot([0.0, end], [0.0, end], color=INK, linewidth=1, linestyle=(0, (4, 3)))
    for search in groups:
        radius, distance = search.radius[search.found], search.distance[search.found]
        axes.scatter(
            radius.numpy(), distance.numpy(), s=10, alpha=0.6, linewidth=0, color=_colour(search),
            label=_name(search),
        )  # fmt: skip
    axes.set_xlim(0.0, end)
    axes.set_ylim(0.0, end)
    label(axes, "certified radius", "closest adversarial point")
    axes.legend(
        loc="upper left", frameon=False, labelcolor=INK, fontsize=TEXT_SIZE, handletextpad=0.1
    )
    counts = "; ".join(f"{_name(search)}, {int(search.found.sum())} samples" for search in groups)
    text = (
        "Certified radius against the distance of the closest adversarial point, which is never "
        f"below it on a sound certificate: {counts}."
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
        axes.hist(ratio.numpy(), bins=BINS, range=(start, end), color=_colour(search), rwidth=0.9)
        axes.set_xlim(start, end)
        axes.set_ylim(bottom=0.0, top=None if len(ratio) else 1.0)
        whole_ticks(axes.yaxis, most=4)
        figures = tightness(search)
        mean = spread(figures.mean, figures.spread) if figures.n else "no sample"
        axes.set_title(
            f"{_name(search)}: {mean}", color=_colour(search), fontsize=TEXT_SIZE, loc="left", pad=4
        )
        label(axes, y="samples")
        described.append(f"{_name(search)} {mean} over {figures.n} samples")
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
        free = box == box_name(None)
        colour, name = (RIGHT if free else BOXED), _box_words(box)
        axes.bar(places + shift, heights, 0.92 * BAR_WIDTH, color=colour, label=name)
        for place, share in zip(places, shares, strict=True):
            if share is None:
                axes.text(place + shift, 0.02, "–", ha="center", color=MUTED, fontsize=TEXT_SIZE)
        shown = ["no sample" if share is None else f"{share:.1%}" for share in shares]
        pairs = zip(shown, epsilons, strict=True)
        described.append(f"{name} " + ", ".join(f"{a} at {epsilon_name(b)}" for a, b in pairs))
    axes.set_xticks(places, [epsilon_name(epsilon) for epsilon in epsilons])
    axes.set_ylim(0.0, 1.0)
    percent_axis(axes)
    label(axes, "radius ε", "r = TP / (TP + FP)")
    axes.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(boxes), frameon=False,
        labelcolor=INK, fontsize=TEXT_SIZE,
    )  # fmt: skip
    return to_svg(figure, "false-positives", f"False-positive analysis: {'; '.join(described)}.")


def _largest(search: Search) -> float:
    found = search.distance[search.found]
    return float(found.max()) if len(found) else 0.0


def _colour(search: Search) -> str:
    return RIGHT if search.box is None else BOXED


def _name(search: Search) -> str:
    return _box_words(box_name(search.box))


def _box_words(box: str) -> str:
    return "without box" if box == box_name(None) else f"in {box}"
