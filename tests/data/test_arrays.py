"""Arrays in .npz files: what is read, and the error that names what is missing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unitmargin.data import arrays
from unitmargin.data.arrays import npz
from unitmargin.data.files import DataError

IMAGES = np.arange(4 * 1 * 2 * 2, dtype=np.uint8).reshape(4, 1, 2, 2)
LABELS = np.array([0, 1, 2, 1])


@pytest.fixture(autouse=True, params=["read", "unpacked"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every file is read as a small one, and unpacked into the cache folder as a large one."""
    if request.param == "unpacked":
        monkeypatch.setattr(arrays, "LARGE", 1)
    return str(request.param)


def saved(folder: Path, **changes: Any) -> Path:
    arrays = {"x_train": IMAGES, "y_train": LABELS, "x_test": IMAGES, "y_test": LABELS} | changes
    path = folder / "data.npz"
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    return path


def test_bytes_get_scale_255_and_classes_get_numbers(tmp_path: Path) -> None:
    dataset = npz(saved(tmp_path))
    assert dataset.train.inputs.dtype == torch.uint8
    assert dataset.train.scale == 255
    assert dataset.classes == ("0", "1", "2")
    assert dataset.in_shape == (1, 2, 2)


def test_floats_are_rounded_to_float32_and_used_as_they_are(tmp_path: Path) -> None:
    features = np.linspace(0, 1, 8).reshape(4, 2)
    dataset = npz(saved(tmp_path, x_train=features, x_test=features))
    assert dataset.train.inputs.dtype == torch.float32
    assert dataset.train.scale == 1
    assert dataset.in_shape == (2,)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["a", "b", "c"], ("a", "b", "c")),
        ([b"cat", "Kühe".encode(), b""], ("cat", "Kühe", "")),
        ([[7], [8], [9]], ("7", "8", "9")),
        ([0.5, 1.0, 2.0], ("0.5", "1.0", "2.0")),
    ],
)
def test_classes_may_be_named(tmp_path: Path, given: list[Any], names: tuple[str, ...]) -> None:
    assert npz(saved(tmp_path, classes=np.array(given))).classes == names


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_test": None}, "must hold x_train, y_train, x_test and y_test.*add y_test"),
        ({"x_train": IMAGES.reshape(4, 2, 2, 1)}, r"x_train must have shape.*transpose\(0, 3, 1,"),
        ({"x_train": np.zeros((4, 8, 8, 4))}, r"x_train must have shape.*transpose\(0, 3, 1,"),
        ({"y_train": LABELS * 2}, "y_train must hold every class, got none of 1 below"),
        ({"x_test": IMAGES[:, 0]}, r"x_test must have shape.*got \(4, 2, 2\); .*x\[:, None\]"),
        ({"x_test": IMAGES.reshape(-1)}, "x_test must have shape.*reshape it"),
        ({"x_test": IMAGES.astype(np.int64)}, "x_test must be uint8 or floating, got int64"),
        ({"y_train": LABELS.astype(float)}, "y_train must be integers, got float64"),
        ({"y_train": LABELS[:3]}, "train samples: labels must be int64 of shape"),
        ({"y_test": LABELS - 1}, "test samples: labels must be >= 0, got -1"),
        ({"classes": np.array(["a", "b"])}, "every train label must be < 2"),
        (
            {"classes": np.array([1j, 2, 3])},
            "classes must be text in UTF-8 or numbers, got complex",
        ),
        (
            {"classes": np.array([b"a", b"\xff", b"c"])},
            r"classes must be text .* got b'.xff'; write",
        ),
        ({"x_train": np.full((4, 2), np.nan)}, "inputs must be finite"),
        (
            {"x_train": np.full((4, 2), 1e300)},
            "inputs must be finite in float32, got .* sample 0; .* or write it in a larger unit",
        ),
        ({"y_train": LABELS.astype(object)}, "file of plain arrays"),
    ],
)
def test_npz_refuses_and_names_the_file(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = saved(tmp_path, **changes)
    with pytest.raises(DataError, match=message) as caught:
        npz(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_npz_refuses_what_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="file, found none"):
        npz(tmp_path / "absent.npz")
    single = tmp_path / "single.npy"
    np.save(single, IMAGES)
    with pytest.raises(DataError, match="got: a single array"):
        npz(single)
    garbage = tmp_path / "garbage.npz"
    garbage.write_bytes(b"no arrays here")
    with pytest.raises(DataError, match="file of plain arrays"):
        npz(garbage)


def test_npz_refuses_a_file_cut_short(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="file of plain arrays"):
        npz(path)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_bytes_may_have_their_channels_last(tmp_path: Path, channels: int) -> None:
    images = np.random.default_rng(0).integers(256, size=(4, 5, 6, channels), dtype=np.uint8)
    labels = np.array([0, 1, 0, 1])
    path = tmp_path / "a.npz"
    np.savez(path, x_train=images, y_train=labels, x_test=images[:2], y_test=labels[:2])
    dataset = npz(path)
    assert dataset.in_shape == (channels, 5, 6)
    assert np.array_equal(dataset.train.inputs.numpy(), images.transpose(0, 3, 1, 2))


def test_short_axes_stay_where_they_are(tmp_path: Path) -> None:
    images = np.zeros((4, 2, 4, 4), np.uint8)
    path = tmp_path / "a.npz"
    labels = np.array([0, 1, 0, 1])
    np.savez(path, x_train=images, y_train=labels, x_test=images, y_test=labels)
    assert npz(path).in_shape == (2, 4, 4)


def test_a_large_file_is_unpacked_once_and_mapped(
    tmp_path: Path, way: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path)
    first, again = npz(path), npz(path)
    assert first.train.mapped == again.train.mapped == (way == "unpacked")
    assert torch.equal(first.train.inputs, torch.from_numpy(IMAGES))
    assert torch.equal(first.train.inputs, again.train.inputs)
    assert first.train.sha256 == again.train.sha256
    assert cache.exists() == (way == "unpacked")
    monkeypatch.setattr(arrays, "LARGE", 2**40)
    assert npz(path).train.sha256 == first.train.sha256


@pytest.mark.parametrize("channels", [1, 3])
def test_arrays_that_lie_column_by_column_are_read(tmp_path: Path, channels: int) -> None:
    images = np.random.default_rng(0).integers(256, size=(4, 5, 6, channels), dtype=np.uint8)
    path = saved(tmp_path, x_train=np.asfortranarray(images), x_test=images)
    dataset = npz(path)
    assert torch.equal(dataset.train.inputs, dataset.test.inputs)
    assert dataset.in_shape == (channels, 5, 6)


@pytest.mark.parametrize("way", ["unpacked"], indirect=True)
def test_a_file_that_changes_while_it_is_read_is_not_kept(
    tmp_path: Path, way: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path)
    real = arrays._unpack

    def unpack(*given: Any) -> None:
        saved(tmp_path, x_train=IMAGES + 100)
        real(*given)

    monkeypatch.setattr(arrays, "_unpack", unpack)
    with pytest.raises(DataError, match="must stay as it is while it is read"):
        npz(path)
    monkeypatch.undo()
    assert not [folder for folder in cache.iterdir() if folder.name.startswith("arrays")]
