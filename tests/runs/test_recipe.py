"""Recipes: what is read is what was written, and every mistake is named."""

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.data import DATASETS
from unitmargin.layers.normalize import NORMALIZATIONS
from unitmargin.models import build_model
from unitmargin.models.freezing import DTYPES
from unitmargin.runs.recipe import (
    DataOptions,
    ModelOptions,
    Recipe,
    RecipeError,
    embedded_recipe,
    parse_recipe,
    read_recipe,
    write_recipe,
)
from unitmargin.training.losses import build_loss
from unitmargin.training.optimizers import build_optimizers
from unitmargin.training.options import TrainingOptions
from unitmargin.training.schedules import schedule_factor

RECIPES = sorted((Path(__file__).parents[1] / "recipes").glob("*.toml"))

INPUTS = {
    "digits": ((1, 8, 8), 10),
    "cifar10": ((3, 32, 32), 10),
    "cifar100": ((3, 32, 32), 100),
    "moons": ((2,), 2),
    "circles": ((2,), 2),
    "blobs": ((2,), 3),
    "spirals": ((2,), 2),
}
"""Input shape and classes of the data sets that recipes may name without a file."""

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
keys = texts.filter(lambda key: key not in {"name", "normalization", "options"})
scalars = st.integers(-5, 500) | st.booleans() | texts | st.floats(-1e6, 1e6)
values = scalars | st.lists(st.integers(0, 99), max_size=4)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


@given(texts, texts, st.dictionaries(keys, values, max_size=4), st.floats(1e-9, 1e3))
def test_round_trip(name: str, path: str, options: dict[str, Any], rate: float) -> None:
    recipe = Recipe(
        name=name,
        data=DataOptions(name="images", path=path, limit=7),
        model=ModelOptions(name="ugnn", normalization="channel", options=options),
        training=TrainingOptions(epochs=3, learning_rate=rate, flip=True, seed=-1),
        dtype="float64",
    )

    assert parse_recipe(tomllib.loads(write_recipe(recipe))) == recipe


def test_round_trip_through_a_file(tmp_path: Path) -> None:
    recipe = Recipe(name="plain")
    assert read_recipe(write(tmp_path, write_recipe(recipe))) == recipe


def test_every_other_key_of_the_model_is_an_option(tmp_path: Path) -> None:
    text = 'name = "a"\n[model]\nname = "dense_ugnn"\nhidden = [4, 3]\nactivation = "abs"\n'
    model = read_recipe(write(tmp_path, text)).model
    assert (model.name, model.normalization) == ("dense_ugnn", "none")
    assert model.options == {"hidden": [4, 3], "activation": "abs"}


def test_whole_numbers_are_read_as_floats(tmp_path: Path) -> None:
    text = 'name = "a"\n[training]\nlearning_rate = 1\n'
    rate = read_recipe(write(tmp_path, text)).training.learning_rate
    assert (rate, type(rate)) == (1.0, float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing.*'name'"),
        ("name = ", "not valid TOML.*Invalid value"),
        ('name = "a"\ncolour = 1', "unknown key 'colour', known: name, data, model"),
        ('name = "a"\n[training]\nepoch = 1', "training: unknown key 'epoch', known: epochs"),
        ('name = "a"\n[training]\nepochs = "3"', "training: epochs must be int, got '3'"),
        ('name = "a"\n[training]\nepochs = 3.0', "epochs must be int, got 3.0"),
        ('name = "a"\n[training]\nepochs = true', "epochs must be int, got True"),
        ('name = "a"\n[training]\nflip = 1', "flip must be bool, got 1"),
        ('name = "a"\n[training]\nepochs = 0', "epochs must be positive, got 0"),
        ('name = "a"\n[training]\nlearning_rate = nan', "learning_rate must be positive, got nan"),
        ('name = "a"\n[training]\ntemperature = -1.0', "temperature must be positive"),
        ('name = "a"\n[training]\ncrop = -1', "crop must be at least 0, got -1"),
        ('name = "a"\ndata = "digits"', "data must be a table, got 'digits'"),
        ('name = "a"\n[data]\nlimit = "all"', "limit must be int \\| None, got 'all'"),
        ("name = 3", "name must be str, got 3"),
    ],
)
def test_mistakes_are_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=message) as raised:
        read_recipe(write(tmp_path, text))
    assert str(tmp_path / "recipe.toml") in str(raised.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(RecipeError, match="not valid TOML"):
        read_recipe(tmp_path / "recipe.toml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no recipe at .*none.toml"):
        read_recipe(tmp_path / "none.toml")


def test_embedded_recipes_are_found_by_name(tmp_path: Path) -> None:
    for file in RECIPES:
        assert embedded_recipe(file.stem).read_text() == file.read_text()
    own = write(tmp_path, 'name = "own"')
    assert embedded_recipe(own) == own
    known = ", ".join(sorted(file.stem for file in RECIPES))
    with pytest.raises(
        FileNotFoundError, match=f"no recipe nothing; pass a file, or one of {known}"
    ):
        embedded_recipe("nothing")
    with pytest.raises(FileNotFoundError):
        embedded_recipe("elsewhere/digits")


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_every_embedded_recipe_can_be_followed(file: Path) -> None:
    recipe = read_recipe(file)
    assert recipe.name == file.stem
    assert recipe.data.name in DATASETS
    assert recipe.model.normalization in NORMALIZATIONS
    assert recipe.dtype in DTYPES
    training = recipe.training
    build_loss(training.loss, training.margin, training.offset, training.temperature)
    assert schedule_factor(training.schedule, 0.5) > 0
    shape, classes = INPUTS[recipe.data.name]
    model = build_model(recipe.model.name, shape, classes, **recipe.model.options)
    assert build_optimizers(model, training.learning_rate, training.manifold_rate)
    with torch.no_grad():
        assert model(torch.rand(1, *shape)).shape == (1, classes)


def test_options_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TrainingOptions().epochs = 3  # type: ignore[misc]
