"""Arrays as new inputs: scaled and labelled, and every other array refused by its rule."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unitmargin.data.files import DataError
from unitmargin.data.stream_arrays import is_arrays, read_arrays
from unitmargin.data.stream_items import Item, Wanted

WANTED = Wanted((1, 2, 2), ("cat", "dog"))

BYTES = np.arange(12, dtype=np.uint8).reshape(3, 1, 2, 2) * 20


def saved(folder: Path, **arrays: Any) -> Path:
    path = folder / "new.npz"
    np.savez(path, **arrays)
    return path


def read(path: Path) -> list[Item]:
    return list(read_arrays(path, WANTED))


@pytest.mark.parametrize("names", [("x", "y"), ("inputs", "labels"), ("x", "labels")])
def test_inputs_and_labels_are_found_by_name(tmp_path: Path, names: tuple[str, str]) -> None:
    items = read(saved(tmp_path, **dict(zip(names, (BYTES, np.array([1, 0, 1])), strict=True))))
    assert [item.label for item in items] == [1, 0, 1]
    assert [item.source for item in items] == [f"{names[0]}[{number}]" for number in range(3)]
    for item, image in zip(items, BYTES, strict=True):
        assert np.array_equal(item.numbers, image.astype(np.float32) / np.float32(255))


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", ">f8"])
def test_floating_numbers_are_taken_as_they_are(tmp_path: Path, dtype: str) -> None:
    numbers = (BYTES / 7).astype(dtype)
    np.save(tmp_path / "new.npy", numbers)
    for path in (saved(tmp_path, x=numbers), tmp_path / "new.npy"):
        items = read(path)
        assert np.array_equal(np.stack([i.numbers for i in items]), numbers.astype(np.float32))
        assert {item.numbers.dtype for item in items} == {np.dtype(np.float32)}
        assert {item.label for item in items} == {-1}


def test_suffixes_may_be_large(tmp_path: Path) -> None:
    """Also of files whose first bytes say nothing."""
    for name in ("a.NPY", "a.Npz"):
        (tmp_path / name).write_bytes(b"damaged")
        assert is_arrays(tmp_path / name)
    (tmp_path / "b.ZIP").write_bytes(b"PK\x03\x04, damaged")
    assert not is_arrays(tmp_path / "b.ZIP")
    with pytest.raises(DataError, match="a whole .npz or .npy file of plain arrays"):
        read(tmp_path / "a.Npz")


def test_blocks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(saved(tmp_path, x=BYTES))
    monkeypatch.setattr("unitmargin.data.stream_arrays.CHUNK", 9)  # two inputs of four bytes
    parts = read(saved(tmp_path, x=BYTES))
    assert np.array_equal([i.numbers for i in whole], [i.numbers for i in parts])
    assert [item.source for item in whole] == [item.source for item in parts]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": BYTES}, r"must hold an array `x` or `inputs`, got \['a'\]; write it"),
        ({"x": BYTES, "inputs": BYTES}, "must hold one of x and inputs, got both"),
        ({"x": BYTES.astype(int)}, "x must be uint8 or floating, got int64; store bytes"),
        ({"x": BYTES > 3}, "x must be uint8 or floating, got bool"),
        ({"x": BYTES.astype(complex)}, "x must be uint8 or floating, got complex128"),
        ({"x": np.array([{}] * 3)}, "x must be uint8 or floating, got object"),
        ({"x": np.array("a")}, "x must be uint8 or floating, got <U1"),
        ({"x": BYTES[:, 0]}, r"shape \(n, 1, 2, 2\), .* \(3, 2, 2\); give grey .* with x\[:, None"),
        ({"x": BYTES[0]}, r"got \(1, 2, 2\); add the batch axis: x\[None\]"),
        ({"x": BYTES.transpose(0, 2, 3, 1)}, r"move the channels forward with x.transpose\(0, 3,"),
        ({"x": np.zeros((3, 1, 2, 3))}, r"got \(3, 1, 2, 3\); reshape it, or pass inputs"),
        ({"x": np.float32(1)}, r"got \(\); reshape it"),
        ({"x": np.asfortranarray(BYTES / 2)}, "x must lie row by row, got column by column; save"),
        ({"x": BYTES, "y": np.zeros(2, int)}, "labels must be one for each of the 3 inputs, got 2"),
        ({"x": BYTES, "y": np.zeros(3)}, r"y must be integers of shape \(n,\), got float64"),
        ({"x": BYTES, "y": np.zeros((3, 1), int)}, r"got int64 of shape \(3, 1\)"),
        ({"x": BYTES, "y": np.array([0, 2, 1])}, "y must be from 0 to 1, .* got 2; correct it"),
        ({"x": BYTES, "y": np.array([0, -1, 1])}, "y must be from 0 to 1, .* got -1; correct it"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    path = saved(tmp_path, **arrays)
    with pytest.raises(DataError, match=f"^{path}: .*{message}"):
        read(path)


@pytest.mark.parametrize("kind", ["npz", "npy"])
@pytest.mark.parametrize("kept", [0.0, 0.02, 0.3, 0.9, 0.999])
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, kind: str, kept: float) -> None:
    path = tmp_path / f"new.{kind}"
    numbers = np.zeros((50, 1, 2, 2))
    np.savez(path, x=numbers) if kind == "npz" else np.save(path, numbers)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(DataError, match=f"^{path}: must be a whole .npz or .npy file of plain"):
        read(path)


def test_a_changed_byte_and_surplus_ones_are_found(tmp_path: Path) -> None:
    path = saved(tmp_path, x=np.zeros((50, 1, 2, 2)))
    content = bytearray(path.read_bytes())
    content[800] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="Bad CRC"):
        read(path)
    single = tmp_path / "new.npy"
    np.save(single, np.zeros((2, 1, 2, 2)))
    single.write_bytes(single.read_bytes() + b"x")
    with pytest.raises(DataError, match="goes on behind its last input"):
        read(single)


def test_bytes_may_have_their_channels_last(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(256, size=(3, 6, 5, 3), dtype=np.uint8)
    wanted = Wanted((3, 6, 5), ("a", "b"))
    found = [list(read_arrays(saved(tmp_path, x=x), wanted)) for x in (
        images, np.ascontiguousarray(images.transpose(0, 3, 1, 2)),
    )]  # fmt: skip
    for last, first in zip(*found, strict=True):
        assert np.array_equal(last.numbers, first.numbers)
    with pytest.raises(DataError, match=r"channels forward with x.transpose\(0, 3, 1, 2\)"):
        list(read_arrays(saved(tmp_path, x=images / 255), wanted))
