"""The figure of the plane: its point, its circle and its numbers are those of the network."""

import math

import pytest
import torch

from unitmargin.paper import toy_example
from unitmargin.paper.toy_example import Toy, make_toy, toy_figure
from unitmargin.runs.recipe import read_recipe
from unitmargin.runs.shipped import embedded_recipe


@pytest.fixture(scope="module")
def toy() -> Toy:
    """Two epochs are enough for a boundary."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_example, "EPOCHS", 2)
        return make_toy()


def test_the_figure_is_of_the_recipe() -> None:
    recipe = read_recipe(embedded_recipe(toy_example.RECIPE))
    assert recipe.training.epochs == toy_example.EPOCHS


def test_the_point_shown_is_at_the_certified_distance(toy: Toy) -> None:
    index = toy.shown()
    radius, distance = float(toy.search.radius[index]), float(toy.search.distance[index])
    assert toy.search.found[index]
    assert radius <= distance <= radius / toy_example.TYPICAL
    ratio = toy.search.radius / toy.search.distance
    typical = toy.search.radius[toy.search.found & (ratio >= toy_example.TYPICAL)]
    assert radius == float(typical.max())


def test_the_figure_shows_its_circle_and_title(toy: Toy) -> None:
    (axes,) = toy_figure(toy).axes
    radius = float(toy.search.radius[toy.shown()])
    (circle,) = axes.patches
    assert circle.get_radius() == radius  # type: ignore[attr-defined]
    lowered = math.floor(1000 * radius) / 1000  # more was not certified
    assert axes.get_title(loc="left").startswith(f"|f(x)| = {lowered:.3f}, closest point")
    assert not bool(toy.search.inside().any())
    assert torch.equal(toy.search.index, torch.arange(len(toy.test)))
