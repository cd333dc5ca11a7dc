"""Init: a recipe that fits the data, says what it found, and runs."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from data.hub import hub_file
from data.tiny import photo, write_folder
from PIL import Image

from unitmargin.runs.opening import open_dataset, open_model
from unitmargin.runs.recipe import DataOptions, Recipe, parse_recipe
from unitmargin.steps.init import RESIZED, init_recipe

RANDOM = np.random.default_rng(0)


def read(text: str) -> Recipe:
    recipe = parse_recipe(tomllib.loads(text))
    dataset = open_dataset(recipe)
    assert open_model(recipe, dataset)(dataset.train.batch(slice(0, 2))[0]).shape[0] == 2
    return recipe


def write_table(folder: Path, label: str = "kind") -> Path:
    lines = [f"ID,age,colour,same,{label}"]
    for row in range(60):
        colour = ("red", "blue", "green")[row % 3]
        lines.append(f"{row},{RANDOM.normal(40, 8)},{colour},1,{('no', 'yes')[row % 2]}")
    file = folder / 'my "table".csv'
    file.write_text("\n".join(lines))
    return file


def test_a_table_is_described(tmp_path: Path) -> None:
    file = write_table(tmp_path)
    text = init_recipe(file, "kind")
    recipe = read(text)
    assert recipe.data.path == str(file)
    assert (recipe.data.name, recipe.data.label, recipe.data.scale) == ("table", "kind", "features")
    assert recipe.data.ignore == ["same", "ID"]
    assert recipe.model.options["hidden"] == [4] * 8
    for words in (
        "48 inputs of 4 numbers to train, 12 to test, in 2 classes",
        "#   no: 24 to train, 6 to test",
        "radii are in standard deviations of the training rows; a change of category has the "
        "length 1: colour (3)",
    ):
        assert words in text
    assert init_recipe(write_table(tmp_path, "class")) != text


def test_columns_are_judged_in_the_split_without_those_that_number_the_rows(tmp_path: Path) -> None:
    """A column that differs in one row alone is constant where that is a test row."""
    file = tmp_path / "a.csv"
    ignored = set()
    for odd in range(20):
        rows = [f"{row},{row % 7},{int(row == odd)},{row % 2}" for row in range(20)]
        file.write_text("\n".join(["id,x,odd,y", *rows]))
        recipe = parse_recipe(tomllib.loads(init_recipe(file)))
        ignored |= {*recipe.data.ignore}
    assert ignored == {"id", "odd"}


def test_arrays_are_described(tmp_path: Path) -> None:
    file = tmp_path / "a.NPZ"
    labels = np.arange(50) % 5
    inputs = 100 * RANDOM.normal(size=(50, 20))
    with file.open("wb") as stream:
        np.savez(stream, x_train=inputs, y_train=labels, x_test=inputs, y_test=labels)
    text = init_recipe(file)
    recipe = read(text)
    assert (recipe.data.name, recipe.model.name) == ("npz", "dense_ugnn")
    assert recipe.training.offset == 50.0
    assert "radii are in the units of the numbers in the file" in text


@pytest.mark.parametrize(("shape", "fits"), [((400,), True), ((3, 11, 11), True), ((298,), False)])
def test_many_classes_have_as_many_features(
    tmp_path: Path, shape: tuple[int, ...], fits: bool
) -> None:
    labels = np.arange(600) % 300
    inputs = RANDOM.normal(size=(600, *shape)).astype(np.float32)
    file = tmp_path / "a.npz"
    np.savez(file, x_train=inputs, y_train=labels, x_test=inputs[:300], y_test=labels[:300])
    if fits:
        recipe = read(init_recipe(file))
        assert recipe.model.name == "dense_ugnn"
        assert recipe.model.options["hidden"] == [299] * 4
    else:
        with pytest.raises(ValueError, match="an input must have at least 299 entries for 300"):
            init_recipe(file)


@pytest.mark.parametrize(
    ("size", "model"), [((8, 8), "dense_ugnn"), ((24, 32), "mixing_ugnn"), ((25, 31), "dense_ugnn")]
)
def test_images_are_described(tmp_path: Path, size: tuple[int, int], model: str) -> None:
    for split, label in ((split, label) for split in ("train", "test") for label in "ab"):
        (tmp_path / "photos" / split / label).mkdir(parents=True)
        for file in range(3):
            pixels = RANDOM.integers(0, 256, size, np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / split / label / f"{file}.png")
    text = init_recipe(tmp_path / "photos")
    recipe = read(text)
    assert (recipe.name, recipe.data.name, recipe.model.name) == ("photos", "images", model)
    assert f"images of 1 x {size[0]} x {size[1]}" in text
    assert "radii are in pixels in [0, 1]" in text


def test_images_of_several_sizes_are_resized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNITMARGIN_CACHE", str(tmp_path / "cache"))
    assert RESIZED == 64
    monkeypatch.setattr("unitmargin.steps.init.RESIZED", 8)  # for a network that is made at once
    files = {f"{label}/{n}.png": photo(n, (20 + n, 30)) for label in "ab" for n in range(4)}
    write_folder(tmp_path / "photos", files)
    labels = [name.split("/")[0] for name in files]
    hub_file(tmp_path / "photos.parquet", [*files.values()], labels, label="kind", y=labels)
    for path, label in (("photos", None), ("photos.parquet", None), ("photos.parquet", "kind")):
        text = init_recipe(tmp_path / path, label)
        recipe = read(text)
        assert (recipe.name, recipe.data.name, recipe.data.resize) == ("photos", "images", 8)
        assert recipe.data.label == label
        assert "images of 3 x 8 x 8" in text
        assert "images have several sizes: the middle square of each" in text


def test_what_has_no_recipe_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.npz").touch()
    with pytest.raises(
        ValueError, match="label must be left out for .*, which is no .csv and no .parquet file"
    ):
        init_recipe(tmp_path / "a.npz", "y")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n,3\n2,2\n1,3\n")
    with pytest.raises(ValueError, match="'x' in line 3 must have a value"):
        init_recipe(tmp_path / "a.csv")
    classes = "".join(f"{row},{row % 9}\n" for row in range(90))
    (tmp_path / "a.csv").write_text(f"x,y\n{classes}")
    message = r"a\.csv: .* at least 8 entries for 9 classes, got 1; .* of zeros, .* by hand"
    with pytest.raises(ValueError, match=message):
        init_recipe(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["a.tsv", "B.XLSX", "c.csv.gz", "d.json"])
def test_tables_of_other_programs_are_to_be_saved_anew(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"a,b")
    with pytest.raises(ValueError, match=f"must be .csv or .parquet .*, got {name}; save it as"):
        init_recipe(tmp_path / name)


def test_columns_of_zeros_make_room_for_classes(tmp_path: Path) -> None:
    """As many entries as a network needs, in an .npz file, or in a table under the scale units."""
    labels = np.arange(40) % 4
    inputs = np.zeros((40, 3))
    inputs[:, 0] = RANDOM.normal(size=40)
    np.savez(tmp_path / "a.npz", x_train=inputs, y_train=labels, x_test=inputs, y_test=labels)
    assert read(init_recipe(tmp_path / "a.npz")).model.options["hidden"] == [3] * 8
    rows = [",".join(map(str, row)) for row in np.column_stack((inputs, labels))]
    (tmp_path / "a.csv").write_text("\n".join(["x,zero,none,y", *rows]))
    data = DataOptions(path=str(tmp_path / "a.csv"), scale="units")
    dataset = open_dataset(Recipe(name="a", data=data))
    assert dataset.in_shape == (3,)
    model = open_model(Recipe(name="a", data=data, model={"name": "dense_ugnn"}), dataset)
    assert model.n_classes == 4
