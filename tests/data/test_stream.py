"""New inputs from any file: batches that hold every input once, in order, in bounded memory."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from data.tiny import png, tar_bytes, write_folder, zip_bytes

from unitmargin.data.files import DataError
from unitmargin.data.split import Split
from unitmargin.data.stream import holds_images, holds_splits, read_inputs

CLASSES = ("cat", "dog")

ROWS, WIDTH = 30_000, 64
"""A file of 8 MB in float32."""


def written(folder: Path, kind: str, numbers: np.ndarray) -> Path:
    path = folder / f"new.{kind}"
    if kind == "npy":
        np.save(path, numbers)
    elif kind == "npz":
        np.savez_compressed(path, x=numbers)
    else:
        np.savetxt(path, numbers, delimiter=",")
    return path


@pytest.mark.parametrize("kind", ["npy", "npz", "csv"])
@pytest.mark.parametrize("batch_size", [1, 3, 7, 100])
def test_batches_hold_every_input_once(tmp_path: Path, kind: str, batch_size: int) -> None:
    numbers = np.random.default_rng(0).random((7, 2, 3))
    path = written(tmp_path, kind, numbers.reshape(7, 6) if kind == "csv" else numbers)
    batches = list(read_inputs(path, (2, 3), CLASSES, batch_size))
    sizes = [len(batch.inputs) for batch in batches]
    assert sum(sizes) == 7
    assert set(sizes[:-1]) <= {batch_size}
    found = np.concatenate([batch.inputs for batch in batches])
    assert found.dtype == np.float32
    assert np.array_equal(found, numbers.astype(np.float32))
    sources = [source for batch in batches for source in batch.sources]
    name = "line {}" if kind == "csv" else "x[{}]"
    first = 1 if kind == "csv" else 0
    assert sources == [name.format(first + number) for number in range(7)]
    assert {label for batch in batches for label in batch.labels.tolist()} == {-1}


@pytest.mark.parametrize("kind", ["npy", "npz", "csv"])
def test_memory_is_that_of_a_batch(tmp_path: Path, kind: str) -> None:
    rows = ROWS // 10 if kind == "csv" else ROWS  # text is parsed cell by cell
    path = written(tmp_path, kind, np.zeros((rows, WIDTH), np.float32))
    whole = rows * WIDTH * 4
    batches = read_inputs(path, (WIDTH,), CLASSES, 16)
    next(batches)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        assert 16 + sum(len(batch.inputs) for batch in batches) == rows
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < 0.6 * whole


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("kind", ["npy", "npz", "csv"])
def test_numbers_that_are_not_finite_are_named(tmp_path: Path, kind: str, value: float) -> None:
    numbers = np.zeros((5, 2))
    numbers[3, 1] = value
    path = written(tmp_path, kind, numbers)
    where = "line 4" if kind == "csv" else r"x\[3\]"
    with pytest.raises(DataError, match=f"must be finite in float32, .* infinity in {where};"):
        list(read_inputs(path, (2,), CLASSES, 2))


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "folder", "tar"])
def test_no_input_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "new"
    if kind == "folder":
        path.mkdir()
    elif kind == "tar":
        path.write_bytes(tar_bytes({}))
    else:
        path = tmp_path / "new.csv"
        path.write_text("\n\n")
        if kind != "csv":
            path = written(tmp_path, kind, np.zeros((0, 3, 4, 4)))
    with pytest.raises(DataError, match=f"{path}: must hold one input at least, got none;"):
        list(read_inputs(path, (3, 4, 4), CLASSES, 2))


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none: must be a folder or archive .* check the path"):
        list(read_inputs(tmp_path / "none", (3,), CLASSES, 2))


def test_a_data_set_is_known_by_its_splits(tmp_path: Path, pets: dict[str, bytes]) -> None:
    archive = tmp_path / "pets.tar"
    archive.write_bytes(tar_bytes({f"top/{name}": image for name, image in pets.items()}))
    files = {"batches.meta.txt": b"cat", "data_batch_1.bin": b"", "readme.html": b""}
    release = write_folder(tmp_path / "cifar", files)
    arrays = tmp_path / "arrays"
    with arrays.open("wb") as file:
        np.savez(file, x_train=np.zeros((2, 2)))
    with_val = write_folder(tmp_path / "val", {"a/train/x/1.png": b"", "a/validation/x/1.png": b""})
    for path in (write_folder(tmp_path / "pets", pets), archive, release, arrays, with_val):
        assert holds_splits(path)


@pytest.mark.parametrize(
    "names",
    [
        ["test/cat/1.png"],
        ["train/cat/1.png"],
        ["val/cat/1.png"],
        ["test/cat/1.png", "val/cat/1.png"],
        ["a/train/cat/1.png", "b/test/cat/1.png"],
        ["test/train/1.png", "test/test/1.png"],
    ],
)
def test_images_of_one_side_alone_are_no_data_set(tmp_path: Path, names: list[str]) -> None:
    files = dict.fromkeys(names, png())
    archive = tmp_path / "a.zip"
    archive.write_bytes(zip_bytes(files))
    for path in (archive, write_folder(tmp_path / "folder", files)):
        assert not holds_splits(path)


def test_new_inputs_have_no_splits(tmp_path: Path) -> None:
    trains = write_folder(tmp_path / "vehicles", {"train/1.png": png(), "car/1.png": png()})
    flat = write_folder(tmp_path / "test", {"1.png": png()})
    archive = tmp_path / "new.tar"
    archive.write_bytes(tar_bytes({"new/cat/1.png": png()}))
    (tmp_path / "empty").mkdir()
    arrays = written(tmp_path, "npz", np.zeros((2, 2)))
    single = written(tmp_path, "npy", np.zeros((2, 2)))
    table = written(tmp_path, "csv", np.zeros((2, 2)))
    others = (tmp_path / "empty", tmp_path / "none", arrays, single, table)
    for path in (trains, flat, archive, *others):
        assert not holds_splits(path)


@pytest.mark.parametrize("name", ["new.png", "new.JPG", "new.csv", "new.npz", "none"])
def test_a_single_file_of_inputs_is_asked_for_no_images(tmp_path: Path, name: str) -> None:
    if name == "new.npz":
        np.savez(tmp_path / name, x=np.zeros((1, 2)))
    elif name != "none":
        (tmp_path / name).write_bytes(png(3, (5, 4)))
    nothing = Split(classes=["cat"], train=[], test=[])
    assert not holds_splits(tmp_path / name)
    assert not holds_images(tmp_path / name, nothing)
