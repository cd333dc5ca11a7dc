"""Settings: any key of a recipe from the command line."""

import re
from pathlib import Path

import pytest

from unitmargin.runs.recipe import RecipeError, read_recipe
from unitmargin.runs.settings import read_settings


@pytest.mark.parametrize(
    ("setting", "table"),
    [
        ("training.learning_rate=0.01", {"training": {"learning_rate": 0.01}}),
        ("verify_samples = 7", {"verify_samples": 7}),
        ("model.hidden=[4, 4]", {"model": {"hidden": [4, 4]}}),
        ("training.flip=true", {"training": {"flip": True}}),
        ("training.schedule=linear", {"training": {"schedule": "linear"}}),
        ('training.schedule="linear"', {"training": {"schedule": "linear"}}),
        ("data.path=a=b.csv", {"data": {"path": "a=b.csv"}}),
        ('data.units."mean area"=2.0', {"data": {"units": {"mean area": 2.0}}}),
        ("data.path=C:\\new", {"data": {"path": "C:\\new"}}),
        ("data.label=", {"data": {"label": ""}}),
    ],
)
def test_values_are_those_of_toml_or_text(setting: str, table: dict[str, object]) -> None:
    assert read_settings([setting], {}) == table


def test_settings_change_single_keys_the_last_one_of_each() -> None:
    table = {"name": "a", "data": {"name": "moons", "limit": 3}}
    changed = read_settings(["data.limit=5", "data.limit=6", "name=b"], table)
    assert changed == {"name": "b", "data": {"name": "moons", "limit": 6}}
    assert table["data"] == {"name": "moons", "limit": 3}


@pytest.mark.parametrize(
    "setting", ["", "x", "=3", "[data]", "a b=3", "a=1\nb=2", "[a]=3", "a..b=1"]
)
def test_what_is_no_pair_is_one_line(setting: str) -> None:
    rule = f"set must be KEY=VALUE, got {setting!r}; write it as training.learning_rate=0.01"
    with pytest.raises(ValueError, match=re.escape(rule)):
        read_settings([setting], {})


def test_a_recipe_is_judged_with_its_settings(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('name = "a"\n[data]\nname = "moons"\n')
    changed = read_recipe(file, ["training.epochs=3", "model.name=dense_ugnn", "model.hidden=[2]"])
    assert (changed.training.epochs, changed.model.options) == (3, {"hidden": [2]})
    for setting, rule in (
        ("training.epoch=3", "training.epoch is no option, known: .*; did you mean 'epochs'?"),
        ("training.epochs=many", "training.epochs must be a valid integer, got 'many'"),
        ("trainings.epochs=3", "trainings is no option"),
        ("name.x=3", "name must be a valid string"),
    ):
        with pytest.raises(RecipeError, match=rule):
            read_recipe(file, [setting])
