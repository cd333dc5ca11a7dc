"""The figure of a classifier of the plane: decision regions, certified discs, closest points."""

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from unitmargin.certificates.exhibits import Exhibit
from unitmargin.certificates.plane import Plane
from unitmargin.reporting.drawing import CLASS_COLOURS, INK, WRONG, canvas, label, legend, to_svg

WIDTH = 480.0
FLATTEST = 0.4
"""Least height of the figure, as a share of its width."""

KEY_LETTERS = 56
"""Letters in a row of the key."""

LONGEST_NAME = 40
"""Letters of a name in the key."""


def decision_regions(plane: Plane, classes: Sequence[str], exhibits: Sequence[Exhibit]) -> str:
    """Regions and points of a classifier of the plane, with the exhibits' discs, as SVG.

    Each exhibit shows its certified disc and, where one was found, a line to its closest point of
    another class.
    """
    horizontal, vertical = plane.horizontal, plane.vertical
    shape = float((vertical[-1] - vertical[0]) / (horizontal[-1] - horizontal[0]))
    figure, (axes,) = canvas(WIDTH, WIDTH * min(max(shape, FLATTEST), 1.0))
    axes.grid(visible=False)
    _draw_regions(axes, plane)
    for index in range(len(classes)):
        chosen = plane.points[plane.labels == index]
        axes.scatter(chosen[:, 0], chosen[:, 1], s=9, color=_colour(index), alpha=0.75, lw=0)
    for exhibit in exhibits:
        _draw_exhibit(axes, exhibit)
    axes.set_aspect("equal")
    axes.set_xlim(float(horizontal[0]), float(horizontal[-1]))
    axes.set_ylim(float(vertical[0]), float(vertical[-1]))
    label(axes, "first coordinate", "second coordinate")
    _draw_key(axes, classes)
    discs = f"{len(exhibits)} certified disc{'s' * (len(exhibits) != 1)}"
    text = (
        f"Decision regions of {len(classes)} classes in the plane with test points, and {discs}, "
        f"{sum(map(_is_met, exhibits))} of them with the closest point of another class."
    )
    return to_svg(figure, "plane", text)


def _draw_regions(axes: Axes, plane: Plane) -> None:
    size = len(plane.vertical), len(plane.horizontal)
    for index in range(plane.logits.shape[1]):
        others = plane.logits.clone()
        others[:, index] = -torch.inf
        lead = (plane.logits[:, index] - others.max(1).values).view(size).numpy()
        if lead.max() <= 0.0:
            continue
        grid = (plane.horizontal.numpy(), plane.vertical.numpy(), lead)
        axes.contourf(*grid, levels=[0.0, lead.max()], colors=[_colour(index)], alpha=0.14)
        if lead.min() < 0.0:
            axes.contour(*grid, levels=[0.0], colors=[INK], linewidths=1.2)


def _draw_exhibit(axes: Axes, exhibit: Exhibit) -> None:
    (x, y), (end_x, end_y) = exhibit.original.tolist(), exhibit.adversarial.tolist()
    colour = INK if exhibit.label == exhibit.predicted else WRONG
    axes.add_patch(Circle((x, y), exhibit.radius, facecolor="none", edgecolor=colour, lw=1.3))
    axes.scatter([x], [y], s=22, color=colour, zorder=3)
    if _is_met(exhibit):
        axes.plot([x, end_x], [y, end_y], color=colour, linewidth=1.1)
        axes.scatter([end_x], [end_y], s=34, color=colour, marker="x", linewidth=1.4, zorder=3)


def _is_met(exhibit: Exhibit) -> bool:
    """Whether the ray of the closed form met another class."""
    return exhibit.distance is not None


def _draw_key(axes: Axes, classes: Sequence[str]) -> None:
    names = [
        name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
        for name in classes[: len(CLASS_COLOURS)]
    ]
    handles = [
        Line2D([], [], linestyle="none", marker="o", markersize=6, color=_colour(index), label=name)
        for index, name in enumerate(names)
    ]
    if more := len(classes) - len(names):
        names.append(f"{more} more: colours repeat")
        handles.append(Line2D([], [], linestyle="none", label=names[-1]))
    columns = min(len(names), max(1, KEY_LETTERS // (max(map(len, names)) + 3)))
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    key = legend(axes, handles=handles, ncols=columns, handletextpad=0.2, **place)
    for text in key.get_texts():
        text.set_parse_math(False)


def _colour(index: int) -> str:
    return CLASS_COLOURS[index % len(CLASS_COLOURS)]
