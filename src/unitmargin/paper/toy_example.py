"""The figure of a signed distance classifier of the plane: contours, a point, its closest one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from unitmargin.certificates.spaces import input_space
from unitmargin.certificates.tightness import Search, search_boundary, tightness
from unitmargin.data import Samples
from unitmargin.frozen import FrozenNetwork
from unitmargin.models import freeze
from unitmargin.paper.canvas import panels
from unitmargin.paper.layout import Table
from unitmargin.paper.target import Output, Target
from unitmargin.reporting import wording
from unitmargin.reporting.drawing import CLASS_COLOURS, INK, TEXT_SIZE, label
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.opening import open_dataset, open_model
from unitmargin.runs.recipe import read_recipe
from unitmargin.runs.shipped import embedded_recipe
from unitmargin.solvers import minimal_perturbation
from unitmargin.training.train import train

RECIPE = "moons"
"""Two classes of the plane, trained in seconds while the figure is written."""

EPOCHS = 40
"""Those of the recipe."""

GRID = 300
BORDER = 0.45
"""Around the samples: enough for contours on the far side of them."""

CONTOURS = 0.08
"""Distance of two contours, in input units."""

TYPICAL = 0.999
"""Least LB/MAP of the point that is shown: most have it, and a corner of the boundary has not."""

ORANGE, BLUE = CLASS_COLOURS[1], CLASS_COLOURS[0]
"""Of the point and of its closest one, as in the paper's figure."""

DOTS = (CLASS_COLOURS[4], CLASS_COLOURS[5])
"""Of the classes, close to the colours of their regions."""

CAPTION = (
    "A binary UGNN of the plane (recipe moons, sixteen hidden layers of two units, Abs), test "
    "points and contours of f = f_0 - f_1, 0.08 apart: they are parallel curves of the boundary "
    "(black), so f is the signed distance to it wherever f has no kink between a point and its "
    "closest boundary point. The cross in orange is a test point, the cross in blue the closest "
    "point of the other class that sphere tracing found; the circle has the radius |f(x)|."
)

HEADER = ("Test points", "Accuracy, %", "LB/MAP", "Smallest", "Share above 0.999, %")


@dataclass(frozen=True, eq=False)
class Toy:
    """A trained network of the plane and what was found of its test points.

    Attributes:
        frozen: the network.
        test: its test samples.
        search: the closest points of all of them.
    """

    frozen: FrozenNetwork
    test: Samples
    search: Search

    def shown(self) -> int:
        """The point of the figure: of the typical ones, that with the largest radius."""
        ratio = self.search.radius / self.search.distance
        candidates = self.search.found & (ratio >= TYPICAL)
        return int(torch.where(candidates, self.search.radius, -1.0).argmax())


def make_toy() -> Toy:
    """Train the recipe, freeze it, and search the closest points of its test samples."""
    recipe = read_recipe(embedded_recipe(RECIPE)).overridden(epochs=EPOCHS)
    dataset = open_dataset(recipe)
    model = open_model(recipe, dataset)
    train(model, dataset.train, dataset.test, recipe.training, quiet=True)
    frozen = freeze(model, torch.float64, dataset.classes)
    inputs, labels = dataset.test.batch(slice(0, len(dataset.test)))
    index = torch.arange(len(labels))
    search = search_boundary(input_space(frozen), inputs, labels, index, "sphere_tracing", None)
    return Toy(frozen, dataset.test, search)


def toy_example(runs: Sequence[RunFolder]) -> Output:
    """``fig:toy-example`` and its numbers; no run is needed."""
    toy = make_toy()
    figures = tightness(toy.search)
    ratio = (toy.search.radius / toy.search.distance)[toy.search.found]
    row = (
        str(len(toy.test)),
        f"{100.0 * figures.right / len(toy.test):.1f}",
        f"{figures.mean:.4f} ± {figures.spread:.4f}",
        f"{figures.smallest:.3f}",
        f"{100.0 * float((ratio >= TYPICAL).double().mean()):.1f}",
    )
    table = Table(
        "tab:toy-example", CAPTION + " LB/MAP is of the right ones.", HEADER, [[row]], HEADER
    )
    return Output([table], {"toy-example": (toy_figure(toy), CAPTION)})


def toy_figure(toy: Toy) -> Figure:
    """Contours, boundary, test points, and one of them with its closest point."""
    inputs, labels = toy.test.batch(slice(0, len(toy.test)))
    figure, (axes,) = panels(1, width=620.0, height=430.0)
    axes.grid(visible=False)
    low, high = (end.double() for end in (inputs.amin(0) - BORDER, inputs.amax(0) + BORDER))
    draw_distance(axes, toy.frozen, low, high)
    for number in range(2):
        chosen = inputs[labels == number]
        axes.scatter(chosen[:, 0], chosen[:, 1], s=8, color=DOTS[number], alpha=0.8)
    index = toy.shown()
    x, own = inputs[index : index + 1], labels[index : index + 1]
    point = minimal_perturbation(toy.frozen, x, own).point[0].tolist()
    start, radius = x[0].tolist(), float(toy.search.radius[index])
    axes.add_patch(Circle((start[0], start[1]), radius, fill=False, edgecolor=ORANGE, lw=1.3))
    axes.plot(*zip(start, point, strict=True), color=INK, linewidth=1.0)
    for place, colour in ((start, ORANGE), (point, BLUE)):
        axes.scatter(place[0], place[1], s=90, marker="x", color=colour, linewidth=2.6, zorder=4)
    axes.set_aspect("equal")
    distance = float(toy.search.distance[index])
    lengths = wording.radius(radius), wording.fixed(distance)
    title = "|f(x)| = {}, closest point of the other class at {}".format(*lengths)
    axes.set_title(title, color=INK, fontsize=TEXT_SIZE, loc="left")
    label(axes, "first coordinate", "second coordinate")
    return figure


def draw_distance(
    axes: Axes, frozen: FrozenNetwork, low: Float64[Tensor, " 2"], high: Float64[Tensor, " 2"]
) -> None:
    """Contours of f_0 - f_1, the boundary in black."""
    ends = zip(low.tolist(), high.tolist(), strict=True)
    across, along = (torch.linspace(*pair, GRID, dtype=torch.float64) for pair in ends)
    grid = torch.stack(torch.meshgrid(across, along, indexing="xy"), dim=2).flatten(0, 1)
    with torch.no_grad():
        logits = frozen.in_float64()(grid)
    f = (logits[:, 0] - logits[:, 1]).view(GRID, GRID).numpy()
    steps = CONTOURS * np.arange(np.floor(f.min() / CONTOURS), np.ceil(f.max() / CONTOURS) + 1)
    plane = across.numpy(), along.numpy(), f
    axes.contourf(*plane, levels=steps, cmap="RdBu_r", alpha=0.35)
    others = steps[np.abs(steps) > 0.5 * CONTOURS]
    axes.contour(*plane, levels=others, colors=[INK], linewidths=0.5, alpha=0.6, linestyles="solid")
    axes.contour(*plane, levels=[0.0], colors=["black"], linewidths=2.2)


TOY_EXAMPLE = Target(recipes=(), searches=False, write=toy_example, takes=lambda _: False)
