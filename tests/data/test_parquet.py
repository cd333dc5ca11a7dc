"""Images in Parquet files: as data sets, and as new inputs."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from data.hub import STRUCT, hub_file
from data.tiny import photo, png, write_folder
from PIL import Image
from pyarrow.parquet import write_table

from unitmargin.data import load_dataset, read_inputs
from unitmargin.data.files import DataError
from unitmargin.data.image_options import ImageOptions
from unitmargin.data.images import images
from unitmargin.data.stream import holds_images, holds_splits

NAMES = ("dog", "cat")


def values(inputs: torch.Tensor) -> list[int]:
    return [int(image[0, 0, 0]) for image in inputs]


def sharded(folder: Path, test: str = "test") -> Path:
    """Three shards: two classes, each image with a value of its own."""
    hub_file(folder / "train-00000-of-00002.parquet", [png(10), png(20)], [1, 0], NAMES)
    hub_file(folder / "train-00001-of-00002.parquet", [png(30)], [1], NAMES)
    hub_file(folder / f"{test}-00000-of-00001.parquet", [png(40), png(50)], [0, 1], NAMES)
    return folder


@pytest.mark.parametrize("test", ["test", "validation"])
def test_shards_are_one_data_set_in_the_order_of_their_rows(tmp_path: Path, test: str) -> None:
    dataset = images(sharded(tmp_path, test))
    assert (dataset.classes, dataset.in_shape, dataset.split) == (NAMES, (3, 4, 4), None)
    assert values(dataset.train.inputs) == [10, 20, 30]
    assert dataset.train.labels.tolist() == [1, 0, 1]
    assert values(dataset.test.inputs) == [40, 50]
    assert dataset.test.labels.tolist() == [0, 1]
    assert dataset.train.scale == 255.0


def test_pixels_are_those_of_a_folder_of_the_same_images(tmp_path: Path) -> None:
    photos = {f"{label}/{n}.png": photo(n, (30, 20)) for label in NAMES for n in range(4)}
    folder = images(write_folder(tmp_path / "photos", photos), options=ImageOptions(resize=8))
    labels = [name.split("/")[0] for name in photos]
    for kind in (STRUCT, pa.binary()):
        file = hub_file(tmp_path / "a.parquet", [*photos.values()], labels, kind=kind)
        rows = images(file, options=ImageOptions(resize=8))
        assert rows.classes == ("cat", "dog") == folder.classes
        for mine, other in ((rows.train, folder.train), (rows.test, folder.test)):
            both = []
            for part in (mine, other):
                stored = map(bytes, part.stored(slice(None)).numpy())
                both.append(sorted(zip(part.labels.tolist(), stored, strict=True)))
            assert both[0] == both[1]


@pytest.mark.parametrize(
    ("labels", "names", "classes"),
    [
        ([10, 2, 10, 2], None, ("2", "10")),
        (["b", "a", "b", "a"], None, ("a", "b")),
        ([1.0, 0.0, 1.0, 0.0], None, ("0", "1")),
        ([True, False, True, False], None, ("False", "True")),
        ([-1, 1, -1, 1], None, ("-1", "1")),
        ([0, 2, 0, 2], ["z", "never seen", "a"], ("z", "a")),
    ],
)
def test_classes_are_what_labels_say(
    tmp_path: Path, labels: list[Any], names: list[str] | None, classes: tuple[str, ...]
) -> None:
    file = hub_file(tmp_path / "a.parquet", [png(n) for n in range(4)], labels, names)
    dataset = images(file)
    assert dataset.classes == classes
    assert len(dataset.train) == len(dataset.test) == 2
    for part in (dataset.train, dataset.test):
        for value, label in zip(values(part.inputs), part.labels.tolist(), strict=True):
            word = names[labels[value]] if names else str(labels[value]).removesuffix(".0")
            assert dataset.classes[label] == word


def test_encoded_columns_of_words_are_labels(tmp_path: Path) -> None:
    words = pa.array(["b", "a", "b", "a"]).dictionary_encode()
    file = hub_file(tmp_path / "a.parquet", [png(n) for n in range(4)], words)
    assert images(file).classes == ("a", "b")


def test_a_label_column_is_chosen_by_the_recipe(tmp_path: Path) -> None:
    rows = [png(n) for n in range(4)]
    file = hub_file(tmp_path / "a.parquet", rows, [0, 1, 0, 1], kind_of=["x", "x", "y", "y"])
    assert images(file).classes == ("0", "1")
    assert load_dataset("images", file, label="kind_of").classes == ("x", "y")
    assert images(file).classes == ("0", "1")
    folder = write_folder(tmp_path / "b", {f"{c}/{n}.png": png(n) for c in "xy" for n in range(2)})
    with pytest.raises(DataError, match="label must be left out for images in folders of their"):
        load_dataset("images", folder, label="kind")


@pytest.mark.parametrize(
    ("rows", "labels", "names", "rule"),
    [
        ([png(), None], [0, 1], None, "a.parquet: row 2 must hold the bytes of an image, got none"),
        ([png(), b""], [0, 1], None, "a.parquet: row 2: must be a whole image"),
        ([png(), png()[:40]], [0, 1], None, "a.parquet: row 2: must be a whole image"),
        ([png(), png(size=(5, 4))], [0, 1], None, r"row 2: must have the size .* 4 x 4, got 4 x 5"),
        ([png(), png()], [0, None], None, "row 2 must have a label in 'label', got none; fill"),
        ([png(), png()], [0, -1], NAMES, "row 2 must have a label in 'label', got none; fill"),
        ([png(), png()], ["a", " "], None, "row 2 must have a label in 'label', got none; fill"),
        ([png(), png()], [0.0, float("nan")], None, "row 2 must have a label in 'label', got none"),
        ([png(), png()], [0.0, 0.5], None, "row 2: 'label' must be a whole number, got 0.5"),
        ([png(), png()], [0, 2], NAMES, "row 2: 'label' must be from 0 to 1, got 2; correct it"),
        ([png(), png()], None, None, "label must name the column of the classes"),
        ([], [], None, "must hold a row in a.parquet, got none"),
        ([png(), png(1)], [0, 0], None, "classes must be two or more different names"),
        ([png(), png(1), png(2)], [0, 1, 1], None, "two different images at least"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_row(
    tmp_path: Path, rows: list[Any], labels: Any, names: Any, rule: str
) -> None:
    with pytest.raises(DataError, match=rule) as told:
        images(hub_file(tmp_path / "a.parquet", rows, labels, names))
    assert "\n" not in str(told.value)


def test_a_row_of_a_shard_is_named_with_its_file(tmp_path: Path) -> None:
    hub_file(sharded(tmp_path) / "train-00001-of-00002.parquet", [png()[:40]], [1], NAMES)
    with pytest.raises(DataError, match=f"{tmp_path}: train-00001-of-00002.parquet row 1: must be"):
        images(tmp_path)


def test_an_image_that_lies_elsewhere_is_named(tmp_path: Path) -> None:
    cells = [{"bytes": None, "path": "x/1.png"}]
    write_table(pa.table({"image": pa.array(cells, STRUCT), "label": [0]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"row 1 must hold the bytes .* the path 'x/1.png' alone"):
        images(tmp_path / "a.parquet")


def test_damaged_pages_are_one_line(tmp_path: Path) -> None:
    file = hub_file(tmp_path / "a.parquet", [png(1), png(2)] * 2, [0, 1] * 2)
    whole = file.read_bytes()
    for start in range(4, 60, 8):
        file.write_bytes(whole[:start] + b"\xff" * 9 + whole[start + 9 :])
        with pytest.raises(DataError) as told:
            images(file)
        assert str(told.value).startswith(f"{file}: ")
        assert "\n" not in str(told.value)


def test_shards_that_do_not_belong_together_are_named(tmp_path: Path) -> None:
    sharded(tmp_path)
    file = tmp_path / "test-00000-of-00001.parquet"
    hub_file(file, [png(1)], [1], ("dog", "cow"))
    with pytest.raises(DataError, match=r"test-.*: must state the class names of the files before"):
        images(tmp_path)
    hub_file(tmp_path / "train-00001-of-00002.parquet", [png(2)], [1], NAMES)
    hub_file(tmp_path / "train-00000-of-00002.parquet", [png(3)], [1], NAMES)
    hub_file(file, [png(1)], [0], NAMES)
    with pytest.raises(DataError, match=r"must have training rows, got none of 'dog'; add some"):
        images(tmp_path)
    hub_file(file, [], pa.array([], pa.int64()), NAMES)
    with pytest.raises(
        DataError, match=r"must hold a row in test-00000-of-00001.parquet, got none"
    ):
        images(tmp_path)


def test_a_split_is_drawn_by_content_and_found_again(tmp_path: Path) -> None:
    rows = [png(value) for value in range(10)]
    labels = ["ab"[value % 2] for value in range(10)]
    first = images(hub_file(tmp_path / "a.parquet", rows, labels))
    turned = images(hub_file(tmp_path / "b.parquet", rows[::-1], labels[::-1]))
    both = [sorted(values(part.test.stored(slice(None)))) for part in (first, turned)]
    assert both[0] == both[1]
    assert first.split is not None
    again = images(tmp_path / "b.parquet", split=first.split)
    assert again.train.sha256 == first.train.sha256
    assert [image.file for image in first.split.train][:1] == ["row 1"]
    assert holds_images(tmp_path / "b.parquet", first.split)
    less = hub_file(tmp_path / "c.parquet", rows[1:], labels[1:])
    assert not holds_images(less, first.split)
    assert not holds_images(tmp_path / "a.parquet", first.split, "kind")


def test_a_data_set_of_shards_has_splits_and_new_rows_have_none(tmp_path: Path) -> None:
    assert holds_splits(sharded(tmp_path / "a"))
    assert not holds_splits(tmp_path / "a/train-00000-of-00002.parquet")
    hub_file(tmp_path / "b/test-00000-of-00001.parquet", [png()], [0], NAMES)
    assert not holds_splits(tmp_path / "b")


def new(path: Path, classes: tuple[str, ...] = NAMES, size: int = 2, **options: Any) -> list[Any]:
    given = ImageOptions(**options)
    return [*read_inputs(path, (3, 4, 4), classes, size, images=given)]


def test_new_rows_come_in_batches_with_their_labels_and_places(tmp_path: Path) -> None:
    batches = new(sharded(tmp_path))
    assert [len(batch.inputs) for batch in batches] == [2, 2, 1]
    inputs = np.concatenate([batch.inputs for batch in batches])
    assert inputs[:, 0, 0, 0].tolist() == [
        float(np.float32(value) / np.float32(255)) for value in (40, 50, 10, 20, 30)
    ]
    assert np.concatenate([batch.labels for batch in batches]).tolist() == [0, 1, 1, 0, 1]
    sources = [source for batch in batches for source in batch.sources]
    assert sources[1:3] == [
        "test-00000-of-00001.parquet row 2",
        "train-00000-of-00002.parquet row 1",
    ]
    (batch,) = new(tmp_path / "train-00001-of-00002.parquet")
    assert batch.sources == ("row 1",)


def test_labels_of_new_rows_may_be_missing_or_foreign(tmp_path: Path) -> None:
    rows = [png(1), png(2), png(3)]
    for labels, names, label, found in (
        (None, None, None, [-1, -1, -1]),
        ([None, 1, 0], NAMES, None, [-1, 1, 0]),
        ([-1, 1, 0], NAMES, None, [-1, 1, 0]),
        (["cow", "cat", "dog"], None, None, [-1, 1, 0]),
        ([0, 1, 0], NAMES, "kind", [-1, -1, -1]),
    ):
        file = hub_file(tmp_path / "new.parquet", rows, labels, names)
        batches = new(file, **({} if label is None else {"label": label}))
        assert np.concatenate([batch.labels for batch in batches]).tolist() == found


def test_new_rows_are_resized_as_those_of_the_training(tmp_path: Path) -> None:
    file = hub_file(tmp_path / "new.parquet", [photo(3, (30, 20)), photo(4, (20, 31))])
    (batch,) = new(file, resize=4)
    assert batch.inputs.shape == (2, 3, 4, 4)
    with pytest.raises(DataError, match=r"new.parquet: row 1: must have the size of the network's"):
        new(file)
    with pytest.raises(DataError, match="images must have one channel or three, got a network"):
        next(read_inputs(file, (12,), NAMES, 2))


def test_memory_does_not_follow_the_number_of_rows(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.bmp")
    content = (tmp_path / "a.bmp").read_bytes()
    file = hub_file(tmp_path / "new.parquet", [content] * 1500)  # 18 MB
    tracemalloc.start()
    for batch in read_inputs(file, (3, 64, 64), NAMES, 16):
        assert len(batch.inputs) <= 16
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6e6


def test_words_beside_stated_class_names_are_named(tmp_path: Path) -> None:
    table = pa.table({"image": [png(1), png(2)], "label": ["cat", "Dog"]})
    features = {"info": {"features": {"label": {"names": [*NAMES], "_type": "ClassLabel"}}}}
    stated = table.replace_schema_metadata({"huggingface": json.dumps(features)})
    write_table(stated, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"row 2: 'label' must be one of the class names .*'Dog'"):
        images(tmp_path / "a.parquet")
