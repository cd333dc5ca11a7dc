"""Arrays in .npy files: written in any order, mapped, and given back to the system."""

import errno
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from unitmargin.data import npy
from unitmargin.data.npy import Pages, RowWriter, as_mapped, map_array, take_rows

BYTE = np.dtype(np.uint8)


def test_rows_written_in_any_order_are_read_by_numpy(tmp_path: Path) -> None:
    expected = np.random.default_rng(0).random((6, 2, 3)).astype(np.float32)
    file = tmp_path / "x.npy"
    with RowWriter(file, expected.shape, expected.dtype) as writer:
        for start in (4, 0, 2):
            writer.write(start, expected[start : start + 2])
    assert np.array_equal(np.load(file, allow_pickle=False), expected)
    assert torch.equal(as_mapped(map_array(file)), torch.from_numpy(expected))


def test_a_file_of_this_shape_is_written_further(tmp_path: Path) -> None:
    file = tmp_path / "x.npy"
    for row, value in ((0, 7), (2, 9)):
        with RowWriter(file, (3, 2), BYTE) as writer:
            writer.write(row, np.full(2, value))
    assert np.load(file).tolist() == [[7, 7], [0, 0], [9, 9]]


@pytest.mark.parametrize("shape", [(4, 2), (3, 3), (3, 2, 1)])
def test_a_file_of_another_shape_is_made_anew(tmp_path: Path, shape: tuple[int, ...]) -> None:
    file = tmp_path / "x.npy"
    np.save(file, np.ones((3, 2), np.uint8))
    with RowWriter(file, shape, BYTE):
        pass
    assert np.array_equal(np.load(file), np.zeros(shape, np.uint8))


def test_a_full_disk_is_named_before_a_row_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match=r"No space left.*x\.npy"):
        RowWriter(tmp_path / "x.npy", (3, 2), BYTE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_rows_are_taken_as_by_an_index(dtype: torch.dtype) -> None:
    inputs = torch.arange(60).reshape(5, 3, 4).to(dtype)
    index = torch.tensor([4, 0, 0, -2])
    assert torch.equal(take_rows(inputs, index), inputs[index])
    assert take_rows(inputs, index[:0]).shape == (0, 3, 4)


def resident() -> int:
    """Bytes of mapped files that this process has in use."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.findall(r"RssFile:\s+(\d+)", status)[0])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_pages_that_were_read_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npy, "IN_USE", 2**23)
    with RowWriter(tmp_path / "x.npy", (64, 2**20), BYTE):
        pass
    array = map_array(tmp_path / "x.npy")
    pages, before = Pages(array), resident()
    for row in array:
        assert not row.any()
        pages.touch(row.nbytes)
    assert resident() - before < 2**25  # half of the file
