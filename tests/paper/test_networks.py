"""Names: from a recipe to the paper's row and back."""

from typing import Any

import pytest

from unitmargin.paper.networks import paper_input, paper_name, paper_side, row_recipe
from unitmargin.paper.printed import printed_rows
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe, read_recipe
from unitmargin.runs.shipped import embedded_recipe

CIFAR = Recipe(
    name="mine",
    data=DataOptions(name="cifar10"),
    model=ModelOptions(name="ugnn", normalization="centre"),
)

ROWS = {
    (row["model"], row["input"], row.get("side", 32))
    for label in ("tab:accuracy", "tab:accuracy-input-size", "tab:dist-table", "tab:further-map")
    for row in printed_rows(label)
}


@pytest.mark.parametrize("row", sorted(ROWS))
def test_every_row_has_the_recipe_that_trains_it(row: tuple[str, str, int]) -> None:
    recipe = read_recipe(embedded_recipe(row_recipe(*row)))
    assert (paper_name(recipe), paper_input(recipe), paper_side(recipe)) == row


def test_the_paper_has_thirty_six_networks() -> None:
    assert len(ROWS) == 36


@pytest.mark.parametrize("row", sorted(ROWS))
def test_recipes_train_as_the_paper_says(row: tuple[str, str, int]) -> None:
    """300 epochs of Adam and margin 0.5 for UGNNs; margin 0.5 sqrt 2 for the peers."""
    training = read_recipe(embedded_recipe(row_recipe(*row))).training
    assert training.loss == "multi_margin"
    assert training.flip
    assert training.crop == 4 * row[2] // 32
    if row[0].startswith("UGNN"):
        assert (training.epochs, training.batch_size, training.optimizer) == (300, 1024, "adam")
        assert (training.schedule, training.margin) == ("halving", 0.5)
    else:
        assert training.epochs == 200
        assert training.margin == pytest.approx(0.5**0.5)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "UGNN+MaxMin+updU"),
        ({"head": "lbfgs", "activation": "oplu"}, "UGNN+OPLU+updU"),
        ({"depth": 5, "hidden": [1024, 512]}, "UGNN+MaxMin+updU"),
        ({"depth": 4}, None),
        ({"hidden": [512]}, None),
        ({"hidden": []}, None),
        ({"kernel_size": 5}, None),
        ({"head": "manifold"}, "UGNN+MaxMin+updU"),
        ({"activation": "groupsort4"}, None),
    ],
)
def test_networks_of_the_paper_and_others(options: dict[str, Any], name: str | None) -> None:
    assert paper_name(CIFAR.changed(model=ModelOptions(name="ugnn", options=options))) == name


@pytest.mark.parametrize(
    ("model", "options", "name"),
    [
        ("resnet9", {}, "ResNet9"),
        ("resnet9", {"activation": "abs"}, "ResNet9+Abs"),
        ("large_convnet", {"conv": "bcop"}, "LargeConvNet"),
        ("large_convnet", {"conv": "cayley"}, None),
    ],
)
def test_peers_with_options_of_their_own_are_others(
    model: str, options: dict[str, Any], name: str | None
) -> None:
    assert paper_name(CIFAR.changed(model=ModelOptions(name=model, options=options))) == name


def test_other_data_are_no_row_of_the_paper() -> None:
    assert paper_name(CIFAR.changed(data={"name": "cifar100"})) is None
