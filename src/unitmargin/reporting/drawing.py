"""The canvas of all figures: one quiet style, and SVG that follows the page's colours.

A figure is drawn in the light theme's colours. :func:`to_svg` replaces each of them by the page's
variable of that name, so the same figure is legible on a light and on a dark page.
"""

import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.ticker import MaxNLocator
from torch import Tensor

INK = "#1c2733"
MUTED = "#66717f"
LINE = "#e3e7ec"
RIGHT = "#2f6fd0"
WRONG = "#d9742a"
BOXED = "#3c9d6b"

THEME = {INK: "--ink", MUTED: "--muted", LINE: "--line", RIGHT: "--right", WRONG: "--wrong"}
"""Colours that the page replaces; all others are drawn as they are on both themes."""

CLASS_COLOURS = (
    "#3b7dd8", "#e07b39", "#3c9d6b", "#9163c7", "#c9505b",
    "#2a9daa", "#b3982a", "#c7609f", "#8a6f57", "#7b8794",
)  # fmt: skip
"""Mid tones, legible on light and dark; classes beyond the tenth begin again."""

BINS = 40
POINTS_PER_INCH = 72
TEXT_SIZE = 12


def canvas(
    width: float = 370.0,
    height: float = 240.0,
    rows: int = 1,
    columns: int = 1,
    ratios: Sequence[float] | None = None,
) -> tuple[Figure, list[Axes]]:
    """An empty figure, its size in points, and its panels row by row; one column has one x axis.

    ``ratios`` are the heights of the rows to one another.
    """
    size = width / POINTS_PER_INCH, height / POINTS_PER_INCH
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(
        rows, columns, sharex=columns == 1, squeeze=False, height_ratios=ratios
    )
    axes = [panel for panel in panels.flat if isinstance(panel, Axes)]
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color(LINE)
        panel.tick_params(colors=MUTED, labelsize=TEXT_SIZE, length=0, pad=6)
        panel.grid(axis="y", color=LINE, linewidth=0.8)
        panel.set_axisbelow(True)
    return figure, axes


def label(axes: Axes, x: str = "", y: str = "") -> None:
    """Name the axes."""
    axes.set_xlabel(x, color=MUTED, fontsize=TEXT_SIZE, labelpad=6)
    axes.set_ylabel(y, color=MUTED, fontsize=TEXT_SIZE, labelpad=8)


def legend(axes: Axes, size: int = TEXT_SIZE, **options: Any) -> Legend:
    """Name what is drawn, with options of matplotlib for the place."""
    return axes.legend(frameon=False, labelcolor=INK, fontsize=size, **options)


def histogram(
    axes: Axes, values: Float[Tensor, " n"], ends: tuple[float, float], colour: str
) -> None:
    """Draw how often values occur between two ends, on a scale of its own."""
    axes.hist(values.numpy(), bins=BINS, range=ends, color=colour, rwidth=0.9)
    axes.set_xlim(*ends)
    axes.set_ylim(bottom=0.0, top=None if len(values) else 1.0)
    whole_ticks(axes.yaxis, most=4)


def whole_ticks(axis: Axis, most: int = 7) -> None:
    """Place at most about ``most`` ticks on an axis, at whole numbers."""
    axis.set_major_locator(MaxNLocator(most, integer=True, steps=[1, 2, 5, 10]))


def percent_axis(axes: Axes) -> None:
    """Show shares in [0, 1] on the y axis as percentages."""
    axes.yaxis.set_major_formatter(lambda share, _: f"{100.0 * share:.4g}%")


def to_svg(figure: Figure, name: str, description: str) -> str:
    """The figure as an ``<svg>`` element to be placed in a page.

    Args:
        figure: drawn in the colours of this module.
        name: unique in the page; every id begins with it.
        description: the text for readers who cannot see the figure.

    The element scales to the width of its place, refers to nothing outside itself, and takes its
    font from the page. Equal figures give equal text.
    """
    buffer, nothing = io.StringIO(), dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    drawn = buffer.getvalue()
    match = re.search(r'<svg[^>]*viewBox="([^"]*)"[^>]*>', drawn)
    assert match is not None  # every SVG of the backend begins so
    body = drawn[match.end() :]
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = body.replace("url(#", f"url(#{name}-").replace('xlink:href="#', f'href="#{name}-')
    body = body.replace("xlink:href=", "href=")
    body = re.sub(r"font-family: [^;\"]*;?", "", body)
    for colour, variable in THEME.items():
        body = body.replace(colour, f"var({variable})")
    title = escape(description)
    return f'<svg viewBox="{match[1]}" role="img" aria-label="{title}">{body}'.rstrip()
