"""Curves of several runs on one axis, told apart by colour and by dashes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from unitmargin.certificates.accuracy import certified_accuracies
from unitmargin.certificates.epsilons import Epsilons, epsilon_name
from unitmargin.reporting.comparison import Compared, certified_share
from unitmargin.reporting.drawing import (
    CLASS_COLOURS,
    canvas,
    label,
    percent_axis,
    to_svg,
    whole_ticks,
)

CURVE_POINTS = 400
"""Radii of a curve: finer than a pixel of the figure."""

DASHES = ((), (6.0, 2.0), (2.0, 1.5), (6.0, 2.0, 1.5, 2.0))
"""Lengths of lines and gaps, in widths of a line."""


class Style(NamedTuple):
    """How the curves of a run are drawn; no two runs share colour and dashes before both have
    begun again."""

    colour: str
    dashes: tuple[float, ...]


def style(number: int) -> Style:
    """The style of the run of that number, from 0."""
    turn = number // len(CLASS_COLOURS)
    return Style(CLASS_COLOURS[number % len(CLASS_COLOURS)], DASHES[(number + turn) % len(DASHES)])


def accuracy_curves(runs: Sequence[Compared], epsilons: Epsilons) -> str:
    """Share of samples that are right and certified beyond a radius, against the radius."""
    longest = max(float(run.certificates.radius.max()) for run in runs)
    end = 1.04 * max(longest, epsilons.positive[0])
    radii = torch.linspace(0.0, end, CURVE_POINTS, dtype=torch.float64)
    curves = [
        (radii.tolist(), certified_accuracies(each.right, each.radius, radii).tolist())
        for each in (run.certificates for run in runs)
    ]
    name = epsilon_name(epsilons.headline)
    shares = [f"{run.name} {certified_share(run, epsilons.headline):.1%}" for run in runs]
    text = f"Certified accuracy against the radius of {len(runs)} runs; at {name}: "
    return _draw(
        "accuracy-curves", runs, curves, ("radius ε", "right and certified beyond ε"), end,
        f"{text}{', '.join(shares)}.",
    )  # fmt: skip


def training_curves(runs: Sequence[Compared], quantity: str, words: str) -> str | None:
    """A quantity of the history against the epoch, of the runs that have it; None of no run.

    Args:
        runs: some of which may have no history.
        quantity: a share of :class:`EpochRecord`.
        words: what it is called.
    """
    curves = [_by_epoch(run, quantity) for run in runs]
    ends = [epochs[-1] for epochs, _ in curves if epochs]
    if not ends:
        return None
    shown = [
        f"{run.name} {shares[-1]:.1%} after {epochs[-1]:g}"
        for run, (epochs, shares) in zip(runs, curves, strict=True)
        if epochs
    ]
    text = f"{words} by epoch: {', '.join(shown)}."
    return _draw(quantity.replace("_", "-"), runs, curves, ("epoch", words), max(ends), text)


def _by_epoch(run: Compared, quantity: str) -> tuple[list[float], list[float]]:
    rows = [(float(row.epoch), getattr(row, quantity)) for row in run.history or ()]
    known = [row for row in rows if row[1] is not None]
    return [epoch for epoch, _ in known], [share for _, share in known]


def _draw(
    name: str,
    runs: Sequence[Compared],
    curves: Sequence[tuple[Sequence[float], Sequence[float]]],
    axis_names: tuple[str, str],
    end: float,
    description: str,
) -> str:
    """One line a run over an axis that begins at 0."""
    figure, (axes,) = canvas()
    for number, (xs, ys) in enumerate(curves):
        colour, dashes = style(number)
        options: dict[str, Any] = {"dashes": dashes} if dashes else {}
        marker = "o" if len(xs) == 1 else None
        axes.plot(xs, ys, color=colour, linewidth=2, marker=marker, **options)
    axes.set_xlim(0.0, end)
    if axis_names[0] == "epoch":
        whole_ticks(axes.xaxis)
    else:
        axes.set_ylim(0.0, 1.0)
    percent_axis(axes)
    label(axes, *axis_names)
    return to_svg(figure, name, description)
