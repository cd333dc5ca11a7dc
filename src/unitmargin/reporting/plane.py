"""The figure of a classifier of the plane: decision regions, certified discs, closest points."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from torch import Tensor

from unitmargin.frozen import FrozenNetwork
from unitmargin.reporting.drawing import CLASS_COLOURS, INK, TEXT_SIZE, WRONG, canvas, label, to_svg
from unitmargin.reporting.gallery import Exhibit

PLANE_SHAPE = (2,)

GRID = 240
"""Points a side of the grid on which regions are drawn."""

MOST_POINTS = 500
"""Test points shown: more hide the regions."""

EDGE = 0.06
"""Empty border, as a share of the extent of points and discs."""

WIDTH = 760.0
FLATTEST = 0.4
"""Least height of the figure, as a share of its width."""


def decision_regions(
    frozen: FrozenNetwork,
    points: Float[Tensor, "batch 2"],
    labels: Int64[Tensor, " batch"],
    exhibits: Sequence[Exhibit],
) -> str:
    """Regions and points of a classifier of the plane, with the exhibits' discs, as SVG.

    Each exhibit shows its certified disc and a line to its closest point of another class.
    """
    horizontal, vertical = (_grid(points, exhibits, axis) for axis in (0, 1))
    shape = float((vertical[-1] - vertical[0]) / (horizontal[-1] - horizontal[0]))
    figure, (axes,) = canvas(WIDTH, WIDTH * min(max(shape, FLATTEST), 1.0))
    axes.grid(visible=False)
    _draw_regions(axes, frozen, horizontal, vertical)
    for index in range(frozen.n_classes):
        chosen = points[:MOST_POINTS][labels[:MOST_POINTS] == index]
        axes.scatter(chosen[:, 0], chosen[:, 1], s=9, color=_colour(index), alpha=0.75, lw=0)
    for exhibit in exhibits:
        _draw_exhibit(axes, exhibit)
    axes.set_aspect("equal")
    axes.set_xlim(float(horizontal[0]), float(horizontal[-1]))
    axes.set_ylim(float(vertical[0]), float(vertical[-1]))
    label(axes, "first coordinate", "second coordinate")
    _draw_key(axes, frozen.classes)
    text = (
        f"Decision regions of {frozen.n_classes} classes in the plane with test points, and "
        f"{len(exhibits)} certified discs with the closest point of another class."
    )
    return to_svg(figure, "plane", text)


def _grid(
    points: Float[Tensor, "batch 2"], exhibits: Sequence[Exhibit], axis: int
) -> Float[Tensor, " grid"]:
    centres = [(float(exhibit.original[axis]), exhibit.radius) for exhibit in exhibits]
    low = min([float(points[:, axis].min()), *(centre - radius for centre, radius in centres)])
    high = max([float(points[:, axis].max()), *(centre + radius for centre, radius in centres)])
    border = EDGE * max(high - low, 1e-6)
    return torch.linspace(low - border, high + border, GRID, dtype=torch.float64)


def _draw_regions(axes: Axes, frozen: FrozenNetwork, horizontal: Tensor, vertical: Tensor) -> None:
    across, along = torch.meshgrid(horizontal, vertical, indexing="xy")
    with torch.no_grad():
        logits = frozen.in_float64()(torch.stack((across.flatten(), along.flatten()), dim=1))
    for index in range(frozen.n_classes):
        others = logits.clone()
        others[:, index] = -torch.inf
        gap = (logits[:, index] - others.max(1).values).view(GRID, GRID).numpy()
        if gap.max() <= 0.0:
            continue
        grid = (horizontal.numpy(), vertical.numpy(), gap)
        axes.contourf(*grid, levels=[0.0, gap.max()], colors=[_colour(index)], alpha=0.14)
        if gap.min() < 0.0:
            axes.contour(*grid, levels=[0.0], colors=[INK], linewidths=1.2)


def _draw_exhibit(axes: Axes, exhibit: Exhibit) -> None:
    (x, y), (end_x, end_y) = exhibit.original.tolist(), exhibit.adversarial.tolist()
    colour = INK if exhibit.label == exhibit.predicted else WRONG
    axes.add_patch(Circle((x, y), exhibit.radius, facecolor="none", edgecolor=colour, lw=1.3))
    axes.plot([x, end_x], [y, end_y], color=colour, linewidth=1.1)
    axes.scatter([x], [y], s=22, color=colour, zorder=3)
    axes.scatter([end_x], [end_y], s=34, color=colour, marker="x", linewidth=1.4, zorder=3)


def _draw_key(axes: Axes, classes: Sequence[str]) -> None:
    handles = [
        Line2D([], [], linestyle="none", marker="o", markersize=6, color=_colour(index), label=name)
        for index, name in enumerate(classes[: len(CLASS_COLOURS)])
    ]
    key = axes.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=len(handles),
        frameon=False,
        labelcolor=INK,
        fontsize=TEXT_SIZE,
        handletextpad=0.2,
    )
    for text in key.get_texts():
        text.set_parse_math(False)


def _colour(index: int) -> str:
    return CLASS_COLOURS[index % len(CLASS_COLOURS)]
