"""Panels side by side, in the style of the report's figures."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unitmargin.reporting.drawing import TEXT_SIZE, canvas


def panels(
    columns: int, rows: int = 1, width: float = 330.0, height: float = 270.0
) -> tuple[Figure, list[Axes]]:
    """An empty figure of ``rows`` x ``columns`` panels, each of the given size in points."""
    figure, axes = canvas(columns * width, rows * height, rows, columns)
    for panel in axes:
        panel.tick_params(labelsize=TEXT_SIZE - 2, pad=4)
    return figure, axes
