"""Panels side by side, in the style of the report's figures."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unitmargin.reporting.drawing import LINE, MUTED, POINTS_PER_INCH, TEXT_SIZE

PANEL_WIDTH = 330.0
PANEL_HEIGHT = 270.0


def panels(
    columns: int, rows: int = 1, width: float = PANEL_WIDTH, height: float = PANEL_HEIGHT
) -> tuple[Figure, list[Axes]]:
    """An empty figure of ``rows`` x ``columns`` panels, each of the given size in points."""
    figure = Figure(
        figsize=(columns * width / POINTS_PER_INCH, rows * height / POINTS_PER_INCH),
        layout="constrained",
    )
    axes = [axes for axes in np.ravel(figure.subplots(rows, columns)) if isinstance(axes, Axes)]
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color(LINE)
        panel.tick_params(colors=MUTED, labelsize=TEXT_SIZE - 2, length=0, pad=4)
        panel.grid(axis="y", color=LINE, linewidth=0.8)
        panel.set_axisbelow(True)
    return figure, axes
