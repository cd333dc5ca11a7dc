"""Recipes: what is read is what was written, and every mistake is named."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.models import build_model
from unitmargin.runs.recipe import (
    DataOptions,
    ModelOptions,
    Recipe,
    RecipeError,
    parse_recipe,
    read_recipe,
    write_recipe,
)
from unitmargin.runs.shipped import embedded_recipe
from unitmargin.training.optimizers import build_optimizers
from unitmargin.training.options import TrainingOptions

RECIPES = sorted((Path(__file__).parents[2] / "recipes").rglob("*.toml"))

INPUTS = {
    "digits": ((1, 8, 8), 10),
    "cifar10": ((3, 32, 32), 10),
    "cifar100": ((3, 32, 32), 100),
    "moons": ((2,), 2),
    "circles": ((2,), 2),
    "blobs": ((2,), 3),
    "spirals": ((2,), 2),
    "images": ((3, 64, 64), 10),
}
"""Input shape and classes of the data sets that recipes name; of images, those it speaks of."""

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
names = st.from_regex("[A-Za-z0-9ä_][A-Za-z0-9 ä.,_-]{0,9}[A-Za-z0-9]", fullmatch=True)
options = st.fixed_dictionaries(
    {},
    optional={
        "activation": st.sampled_from(["abs", "groupsort4", "partial_abs4"]),
        "hidden": st.lists(st.integers(1, 99), max_size=4),
        "kernel_size": st.integers(1, 9),
    },
)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


@given(names, texts, options, st.floats(1e-9, 1e3))
def test_round_trip(name: str, path: str, options: dict[str, Any], rate: float) -> None:
    recipe = Recipe(
        name=name,
        data=DataOptions(name="images", path=path, limit=7),
        model=ModelOptions(name="ugnn", normalization="channel", options=options),
        training=TrainingOptions(epochs=3, learning_rate=rate, flip=True, seed=9),
        dtype="float64",
    )
    assert parse_recipe(tomllib.loads(write_recipe(recipe))) == recipe


def test_tuples_are_written_and_read_as_lists() -> None:
    recipe = Recipe(name="a", model=ModelOptions(options={"hidden": (4, 3)}))
    assert recipe.model.options == {"hidden": [4, 3]}
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
        ("", "name must be given, got nothing; add it"),
        ("name = ", "not valid TOML.*Invalid value"),
        ("name = 3", "name must be a valid string, got 3"),
        ('name = ""', "name must name a folder: .* got ''"),
        ('name = ".a"', "name must name a folder: .* got '.a'"),
        ('name = "../a"', "name must name a folder: .* got '../a'"),
        (r'name = "a\\b"', "name must name a folder"),
        ('name = "a/b"', "name must name a folder"),
        ('name = "a"\ncolour = 1', "colour is no option, known: name, data, model"),
        ('name = "a"\ndata = "digits"', "data must be a table, got 'digits'"),
        ('name = "a"\ndtype = "float16"', "dtype must be one of float32, float64, got 'float16'"),
        ('name = "a"\nverify_samples = 0', "verify_samples must be greater than 0, got 0"),
        ('name = "a"\n[data]\nname = "digit"', "data.name must be one of .* did you mean 'digits'"),
        ('name = "a"\n[data]\npath = 3', "data.path must be a valid string, got 3"),
        ('name = "a"\n[data]\nlimit = "all"', "data.limit must be a valid integer, got 'all'"),
        ('name = "a"\n[data]\nlimit = 0', "data.limit must be greater than 0, got 0"),
        ('name = "a"\n[data]\nupsample = 0', "data.upsample must be greater than 0, got 0"),
        ('name = "a"\n[model]\nname = "ugn"', "model.name must be one of .* did you mean 'ugnn'"),
        (
            'name = "a"\n[model]\nnormalization = "max"',
            "model.normalization must be one of none, .* got 'max'",
        ),
        ('name = "a"\n[model]\nwidth = 4', "model.width is no option, known: activation, conv"),
        ('name = "a"\n[model]\nnormalize = 4', "model.normalize is no option"),
        ('name = "a"\n[model]\nn_classes = 4', "model.n_classes is no option"),
        ('name = "a"\n[model]\nhidden = 4', "model.hidden must be a list, got 4"),
        ('name = "a"\n[model]\nhidden = "ab"', "model.hidden must be a list, got 'ab'"),
        (
            'name = "a"\n[model]\nhidden = [4, 2.5]',
            "model.hidden.1 must be a valid integer, got 2.5",
        ),
        ('name = "a"\n[model]\ndepth = "deep"', "model.depth must be a valid integer, got 'deep'"),
        (
            'name = "a"\n[model]\nactivation = "maxmim"',
            "model.activation must be one of .* did you mean 'maxmin'",
        ),
        (
            'name = "a"\n[model]\nactivation = "groupsort1"',
            "model.activation must be .* got 'groupsort1'",
        ),
        ('name = "a"\n[model]\nactivation = 3', "model.activation must be a valid string, got 3"),
        ('name = "a"\n[model]\nconv = "skw"', "model.conv must be one of .* did you mean 'skew'"),
        ('name = "a"\n[model]\nlinear = "lu"', "model.linear must be one of .* got 'lu'"),
        (
            'name = "a"\n[model]\nhead = "simple"',
            "model.head must be one of .* did you mean 'simplex'",
        ),
        (
            'name = "a"\n[training]\nepoch = 1',
            "training.epoch is no option, known: epochs.* did you mean 'epochs'",
        ),
        (
            'name = "a"\n[training]\nepochs = "3"',
            "training.epochs must be a valid integer, got '3'",
        ),
        ('name = "a"\n[training]\nepochs = 3.0', "epochs must be a valid integer, got 3.0"),
        ('name = "a"\n[training]\nepochs = true', "epochs must be a valid integer, got True"),
        ('name = "a"\n[training]\nepochs = 0', "epochs must be greater than 0, got 0"),
        ('name = "a"\n[training]\nsteps = -1', "steps must be greater than or equal to 0, got -1"),
        ('name = "a"\n[training]\nbatch_size = 0', "batch_size must be greater than 0, got 0"),
        ('name = "a"\n[training]\nflip = 1', "flip must be a valid boolean, got 1"),
        (
            'name = "a"\n[training]\noptimizer = "adm"',
            "training.optimizer must be one of adam, sgd, .* did you mean 'adam'",
        ),
        ('name = "a"\n[training]\nmomentum = 1.0', "momentum must be less than 1, got 1.0"),
        (
            'name = "a"\n[training]\nweight_decay = -0.1',
            "weight_decay must be greater than or equal to 0",
        ),
        (
            'name = "a"\n[training]\nlearning_rate = nan',
            "learning_rate must be a finite number, got nan",
        ),
        (
            'name = "a"\n[training]\nlearning_rate = inf',
            "learning_rate must be a finite number, got inf",
        ),
        (
            'name = "a"\n[training]\nlearning_rate = true',
            "learning_rate must be a valid number, got True",
        ),
        (
            'name = "a"\n[training]\nmanifold_rate = 0',
            "manifold_rate must be greater than 0, got 0",
        ),
        (
            'name = "a"\n[training]\nschedule = "cosine"',
            "training.schedule must be one of halving, .* got 'cosine'",
        ),
        (
            'name = "a"\n[training]\nloss = "hinge"',
            "training.loss must be one of multi_margin, .* got 'hinge'",
        ),
        ('name = "a"\n[training]\nmargin = 0', "margin must be greater than 0"),
        ('name = "a"\n[training]\noffset = -1', "offset must be greater than or equal to 0"),
        (
            'name = "a"\n[training]\ntemperature = -1.0',
            "temperature must be greater than 0, got -1.0",
        ),
        ('name = "a"\n[training]\ncrop = -1', "crop must be greater than or equal to 0, got -1"),
        (
            'name = "a"\n[training]\npadding = "edge"',
            "training.padding must be one of zeros, reflect, got 'edge'",
        ),
        (
            'name = "a"\n[training]\nprecision = "float16"',
            "training.precision must be one of float32, .* got 'float16'",
        ),
        ('name = "a"\n[training]\nseed = -1', "seed must be greater than or equal to 0, got -1"),
        ('name = "a"\n[training]\nseed = 4294967296', "seed must be less than 4294967296"),
    ],
)
def test_mistakes_are_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=message) as raised:
        read_recipe(write(tmp_path, text))
    assert str(tmp_path / "recipe.toml") in str(raised.value)
    assert "\n" not in str(raised.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(RecipeError, match="not in UTF-8"):
        read_recipe(tmp_path / "recipe.toml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no recipe at .*none.toml"):
        read_recipe(tmp_path / "none.toml")


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_every_embedded_recipe_returns_and_is_found_by_its_name(file: Path) -> None:
    recipe = read_recipe(file)
    assert recipe.name == file.stem
    assert parse_recipe(tomllib.loads(write_recipe(recipe))) == recipe


FOLLOWED = [
    "digits", "digits-mixing", "moons", "cifar10-ugnn", "cifar10-ugnn-paper-exact",
    "cifar10-minute", "cifar10-fast", "cifar10-best", "cifar10-overnight", "cifar10-wide",
    "cifar100-fast", "images-64",
]  # fmt: skip


@pytest.mark.parametrize("name", FOLLOWED)
def test_embedded_recipes_can_be_followed(name: str) -> None:
    recipe = read_recipe(embedded_recipe(name))
    shape, classes = INPUTS[recipe.data.name]
    model = build_model(recipe.model.name, shape, classes, **recipe.model.options)
    assert build_optimizers(model, recipe.training.learning_rate, recipe.training.manifold_rate)
    with torch.no_grad():
        assert model(torch.rand(1, *shape)).shape == (1, classes)


def test_a_command_line_overrides_what_it_names(tmp_path: Path) -> None:
    recipe = Recipe(name="a", data=DataOptions(limit=9))
    assert recipe.overridden() == recipe
    other = recipe.overridden(tmp_path / "x", limit=5, epochs=2, seed=7)
    assert (other.data.path, other.data.limit) == (str(tmp_path / "x"), 5)
    assert (other.training.epochs, other.training.seed) == (2, 7)
    with pytest.raises(ValueError, match="epochs must be greater than 0, got 0"):
        recipe.overridden(epochs=0)


def test_epochs_are_refused_where_a_recipe_has_steps(tmp_path: Path) -> None:
    """As a recipe that `train --minutes` wrote."""
    recipe = Recipe(name="a", training=TrainingOptions(steps=3))
    rule = "epochs must be left out where steps are given, got 100 and steps = 3; .*training.steps="
    with pytest.raises(ValueError, match=rule):
        recipe.overridden(epochs=100)
    assert recipe.overridden(seed=1).training.steps == 3
    file = tmp_path / "recipe.toml"
    file.write_text(write_recipe(recipe))
    assert read_recipe(file) == recipe
    with pytest.raises(ValueError, match=rule):
        read_recipe(file, ["training.epochs=100"])
    changed = read_recipe(file, ["training.steps=0"]).overridden(epochs=100)
    assert (changed.training.epochs, changed.training.steps) == (100, 0)
    assert read_recipe(file, ["training.epochs=100", "training.steps=0"]) == changed


def test_a_path_names_its_data_set_and_a_table_its_split() -> None:
    for data, name, share in (
        ({"path": "a.csv"}, "table", 0.2),
        ({"path": "a.parquet", "test_share": 0.5}, "table", 0.5),
        ({"path": "a.csv", "test": "b.csv"}, "table", None),
        ({"path": "a.npz"}, "npz", None),
        ({"path": "A.CSV"}, "table", 0.2),
        ({"path": "A.Npz"}, "npz", None),
        ({"name": "images", "path": "photos.csv"}, "images", None),
        ({}, "digits", None),
    ):
        recipe = parse_recipe({"name": "a", "data": data})
        assert (recipe.data.name, recipe.data.test_share) == (name, share)
        assert parse_recipe(tomllib.loads(write_recipe(recipe))) == recipe
        placeless = recipe.placeless()
        assert (placeless.data.path, placeless.data.test) == (None, None)
        assert (placeless.data.name, placeless.data.test_share) == (name, share)


def test_options_of_tables_are_of_tables_alone() -> None:
    with pytest.raises(RecipeError, match="data.label must be left out for data set 'digits', got"):
        parse_recipe({"name": "a", "data": {"label": "y"}})
    assert "scale" not in write_recipe(parse_recipe({"name": "a"}))
    units = {"path": "a.csv", "scale": "units", "units": {"mean area": 2.0}}
    assert parse_recipe({"name": "a", "data": units}).data.table().units == {"mean area": 2.0}
    for units in ({"age": 0.0}, {"age": -1.0}, {"age": float("inf")}, {"age": "5"}):
        with pytest.raises(RecipeError, match="data.units.age must be"):
            parse_recipe({"name": "a", "data": {"path": "a.csv", "scale": "units", "units": units}})
