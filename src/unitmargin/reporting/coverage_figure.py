"""The figure of coverage and accuracy against the threshold, with the thresholds to choose from."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unitmargin.reporting.drawing import (
    INK,
    MUTED,
    RIGHT,
    TEXT_SIZE,
    WRONG,
    canvas,
    label,
    legend,
    percent_axis,
    to_svg,
    whole_ticks,
)

LABEL_ROOM = 0.13
"""Share of an axis that a label of a threshold takes."""


def coverage_figure(
    curve: Mapping[str, Sequence[Any]], samples: int, choices: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Share of samples that are accepted and accuracy among them, against the threshold; below,
    how many of the accepted are wrong.

    Args:
        curve: threshold, accepted and wrong, as coverage.py counts them.
        samples: how many there are.
        choices: thresholds that are marked with the accuracy that they are for.
    """
    thresholds, accepted, wrong = (
        np.array(curve[name]) for name in ("threshold", "accepted", "wrong")
    )
    some = accepted > 0
    accuracy = 1.0 - wrong[some] / accepted[some]
    figure, (shares, counts) = canvas(height=300.0, rows=2, ratios=(2.0, 1.0))
    shares.fill_between(thresholds, accepted / samples, color=MUTED, alpha=0.1, lw=0)
    shares.plot(thresholds, accepted / samples, color=MUTED, lw=2, label="accepted, of all")
    shares.plot(thresholds[some], accuracy, color=RIGHT, lw=2, label="right, of the accepted")
    shares.set_ylim(0.0, 1.03)
    percent_axis(shares)
    legend(shares, loc="lower center", bbox_to_anchor=(0.5, 1.06), ncols=2)
    marked = _mark_choices(shares, choices, float(thresholds[-1]))
    counts.fill_between(thresholds, wrong, color=WRONG, alpha=0.15, lw=0, step="post")
    counts.plot(thresholds, wrong, color=WRONG, lw=2, drawstyle="steps-post")
    counts.set_xlim(0.0, float(thresholds[-1]))
    counts.set_ylim(0.0, 1.1 * max(1.0, float(wrong.max())))
    whole_ticks(counts.yaxis, most=4)
    label(shares, y="share")
    label(counts, "threshold: accepted are radii above it", "wrong")
    text = (
        f"Coverage against the threshold: at 0, {int(accepted[0])} of {samples} samples are "
        f"accepted and {int(wrong[0])} of them are wrong{marked}."
    )
    return to_svg(figure, "coverage", text)


def _mark_choices(axes: Axes, choices: Sequence[Mapping[str, Any]], end: float) -> str:
    """Mark thresholds by lines and, where there is room, by their accuracies; the words for it."""
    words, last = [], -math.inf
    for row in choices:
        threshold, name = row["threshold"], f"{100 * row['target']:g}%"
        if threshold is None or threshold > end:
            continue
        axes.axvline(threshold, color=INK, linewidth=1, linestyle=(0, (2, 2)))
        if threshold - last > LABEL_ROOM * end:
            axes.annotate(
                name,
                (threshold, 0.0),
                xytext=(3, 4),
                textcoords="offset points",
                color=INK,
                fontsize=TEXT_SIZE,
            )
            last = threshold
        words.append(f"{name} right above {threshold:g}")
    return f"; {', '.join(words)}" if words else ""
