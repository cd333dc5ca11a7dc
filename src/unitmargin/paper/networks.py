"""How the paper names networks and inputs, and which recipe trains the row of that name."""

import inspect
from typing import Any

from unitmargin.models import MODELS
from unitmargin.models.ugnn import PAPER_DEPTH, PAPER_HIDDEN
from unitmargin.runs.recipe import Recipe

PAPER_SIDE = 32
"""Side of the images in all tables but the one on the input size."""

ACTIVATIONS = {"abs": "Abs", "maxmin": "MaxMin", "oplu": "OPLU"}

HEADS = {"bounded": "updB", "lbfgs": "updU", "simplex": "updU", "manifold": "updU"}
"""The simplex head is the closed form of the projection that the paper's updU iterates; the one on
the manifold has the same weights."""

PEERS = {"large_convnet": "LargeConvNet", "resnet9": "ResNet9", "lip_convnet5": "LipConvNet5"}
"""The 1-Lipschitz networks; their own activation is MaxMin, which the paper does not write."""

INPUTS = {"none": "raw", "centre": "raw", "channel": "norm"}
"""Subtracting the mean moves no distance, so centred pixels count as raw."""


def paper_name(recipe: Recipe) -> str | None:
    """The paper's name of a network, such as UGNN+MaxMin+updU; None for what it has no row for.

    Example:
        >>> from unitmargin.runs.recipe import read_recipe
        >>> from unitmargin.runs.shipped import embedded_recipe
        >>> paper_name(read_recipe(embedded_recipe("cifar10-ugnn")))
        'UGNN+MaxMin+updU'
    """
    if recipe.data.name != "cifar10" or recipe.model.name not in ("ugnn", *PEERS):
        return None
    options = model_options(recipe)
    activation = ACTIVATIONS.get(options["activation"])
    if recipe.model.name in PEERS:
        own = options | {"activation": None} != _defaults(recipe) | {"activation": None}
        name = PEERS[recipe.model.name]
        return {"MaxMin": name, "Abs": f"{name}+Abs"}.get(activation or "") if not own else None
    head = HEADS.get(options["head"])
    depth = PAPER_DEPTH if options["depth"] is None else options["depth"]
    hidden = PAPER_HIDDEN if options["hidden"] is None else options["hidden"]
    paper = (depth, tuple(hidden), options["kernel_size"]) == (PAPER_DEPTH, PAPER_HIDDEN, 3)
    return f"UGNN+{activation}+{head}" if activation and head and paper else None


def paper_input(recipe: Recipe) -> str:
    """The paper's name of the input, raw or norm, and ours for what it has no name for."""
    return INPUTS.get(recipe.model.normalization, recipe.model.normalization)


def paper_side(recipe: Recipe) -> int:
    """Side of the images that the network sees."""
    return PAPER_SIDE * recipe.data.upsample


def own_row(recipe: Recipe) -> str | None:
    """Name of the embedded recipe of the paper's row that a recipe belongs to, if any."""
    name = paper_name(recipe)
    return None if name is None else row_recipe(name, paper_input(recipe), paper_side(recipe))


def model_options(recipe: Recipe) -> dict[str, Any]:
    """The options of a recipe's model, with the model's defaults for those it leaves out."""
    return _defaults(recipe) | recipe.model.options


def _defaults(recipe: Recipe) -> dict[str, Any]:
    parameters = inspect.signature(MODELS[recipe.model.name]).parameters.values()
    return {option.name: option.default for option in parameters}


def row_recipe(model: str, given: str, side: int = PAPER_SIDE) -> str:
    """Name of the embedded recipe that trains a row of the paper's tables.

    Args:
        model: as the paper names it.
        given: its input, raw or norm.
        side: of its images.

    Example:
        >>> row_recipe("UGNN+MaxMin+updB", "raw", 256), row_recipe("ResNet9+Abs", "norm")
        ('paper/ugnn-maxmin-updb-256-raw', 'paper/resnet9-abs-norm')
    """
    size = "" if side == PAPER_SIDE else f"-{side}"
    return f"paper/{model.lower().replace('+', '-')}{size}-{given}"
