"""The figures of a report: curves of a run and histograms of its promises, each as one SVG."""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from torch import Tensor

from unitmargin.certificates.accuracy import certified_accuracies
from unitmargin.reporting.drawing import (
    INK,
    MUTED,
    RIGHT,
    TEXT_SIZE,
    WRONG,
    canvas,
    label,
    percent_axis,
    to_svg,
    whole_ticks,
)
from unitmargin.training.train import EpochRecord

CURVE_POINTS = 400
"""Radii at which the certified-accuracy curve is evaluated: finer than a pixel of the figure."""

BINS = 40

MANY_EPOCHS = 40
"""Above this, a curve is dense enough to be read without a dot an epoch."""

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
    epochs = [row.epoch for row in history]
    clean = [row.clean_accuracy for row in history]
    certified = [row.certified_accuracy for row in history]
    figure, (axes,) = canvas()
    curves = (("clean", clean, MUTED), (f"certified at {epsilon}", certified, RIGHT))
    for name, values, colour in curves:
        marker = _marker(epochs)
        axes.plot(epochs, values, color=colour, label=name, lw=2, marker=marker, markersize=4)
    _epoch_axis(axes, epochs)
    percent_axis(axes)
    label(axes, "epoch", "test accuracy")
    axes.legend(loc="lower right", frameon=False, labelcolor=INK, fontsize=TEXT_SIZE)
    text = (
        f"Test accuracy by epoch; after the last one {clean[-1]:.1%} clean and "
        f"{certified[-1]:.1%} certified at {epsilon}."
    )
    return to_svg(figure, "accuracy-curve", text)


def gradient_norm_histogram(norms: Float[Tensor, "batch pairs"]) -> str:
    """Histogram of pairwise gradient norms, as deviations from the promised 1.

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
        f"Histogram of {len(scaled)} pairwise gradient norms: all within {largest:.1e} of the "
        "promised 1."
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
        axes.hist(chosen.numpy(), bins=BINS, range=(0.0, end), color=colour, rwidth=0.9)
        axes.set_xlim(0.0, end)
        axes.set_ylim(bottom=0.0, top=None if len(chosen) else 1.0)
        whole_ticks(axes.yaxis, most=4)
        median = f", median {float(chosen.median()):.3g}" if len(chosen) else ""
        counts.append(f"{len(chosen)} {name} predictions{median}")
        axes.set_title(
            f"{len(chosen):,} {name}", color=colour, fontsize=TEXT_SIZE, loc="right", pad=2
        )
    label(panels[0], y="samples")
    label(panels[1], "margin of the predicted class", "samples")
    return to_svg(figure, "margins", f"Histograms of the margin: {'; '.join(counts)}.")


def _epoch_axis(axes: Axes, epochs: Sequence[int]) -> None:
    axes.set_xlim(epochs[0] - 0.5, epochs[-1] + 0.5)
    whole_ticks(axes.xaxis)


def _marker(epochs: Sequence[int]) -> str | None:
    return "o" if len(epochs) <= MANY_EPOCHS else None
