"""Data sets by name: every loader, limits, and errors that say what to give."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from data.tiny import kept, write_folder

from unitmargin.data import DATASETS, Split, TableOptions, load_dataset

MADE = ["digits", "moons", "circles", "blobs", "spirals"]


def test_the_names_are_a_contract() -> None:
    assert list(DATASETS) == [*MADE, "cifar10", "cifar100", "images", "npz", "table", "shards"]


@pytest.mark.parametrize("name", MADE)
def test_data_sets_that_need_no_file(name: str) -> None:
    dataset = load_dataset(name, limit=50)
    assert dataset.name == name
    assert (len(dataset.train), len(dataset.test)) == (50, 50)
    inputs, labels = dataset.train.batch(torch.arange(7))
    assert inputs.shape == (7, *dataset.in_shape)
    assert labels.max() < dataset.n_classes


@pytest.mark.parametrize("name", MADE)
def test_a_path_that_is_not_wanted_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"path must be left out for data set '{name}'"):
        load_dataset(name, tmp_path)


@pytest.mark.parametrize("name", ["images", "npz", "table"])
def test_a_path_that_is_missing_is_asked_for(name: str) -> None:
    with pytest.raises(ValueError, match=f"path must be given for data set '{name}'"):
        load_dataset(name)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match=r"name must be one of digits, .*table, shards, got 'mnist'"
    ):
        load_dataset("mnist")


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="limit must be >= 1, got 0"):
        load_dataset("moons", limit=0)


def test_files_are_read_by_name(tmp_path: Path, pets: dict[str, bytes]) -> None:
    folder = write_folder(tmp_path / "pets", pets)
    assert load_dataset("images", str(folder), limit=1, cache=tmp_path / "kept").name == "images"
    assert len(kept(tmp_path / "kept")) == 1
    path = tmp_path / "data.npz"
    x, y = np.zeros((4, 3), dtype=np.float32), np.array([0, 1, 0, 1])
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y)
    assert load_dataset("npz", path).in_shape == (3,)


def test_the_import_is_light() -> None:
    heavy = "{'sklearn', 'PIL', 'scipy', 'matplotlib'}"
    code = f"import sys, unitmargin.data; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "options", "rule"),
    [
        ("npz", {"test": "b.npz"}, 'test must be left out .* it is an option of "shards"'),
        ("images", {"test": "photos"}, "test must be left out for data set 'images'"),
        ("table", {"test": "b.csv"}, r"as table=TableOptions\(test=...\)"),
        ("table", {"label": "y"}, r"label .*; pass it as table=TableOptions\(label=...\)"),
        ("digits", {"test": "x"}, "test must be left out for data set 'digits'"),
        ("shards", {"test": "b.tar", "test_share": 0.5}, "test_share must be left out"),
        ("shards", {"test": "b.tar", "label": "y"}, 'label must be .* option of "images"'),
        ("npz", {"resize": 8}, 'resize must be .* it is an option of "images" and "shards"'),
        ("images", {"table": TableOptions()}, "table must be left out for data set 'images'"),
        ("table", {"split": Split(classes=["a"], train=[], test=[])}, "split must be left out"),
    ],
)
def test_options_that_a_data_set_has_no_use_for_are_refused(
    name: str, options: dict[str, Any], rule: str
) -> None:
    with pytest.raises(ValueError, match=rule):
        load_dataset(name, None if name == "digits" else "a.file", **options)


def test_inputs_that_are_mapped_are_written_in_a_copy(
    tmp_path: Path, pets: dict[str, bytes]
) -> None:
    mapped = load_dataset("images", write_folder(tmp_path / "pets", pets)).train.inputs
    copy = mapped.clone()
    copy.fill_(0)
    assert int(mapped.max()) > int(copy.max()) == 0
