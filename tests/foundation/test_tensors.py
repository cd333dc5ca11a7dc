"""Tensors and words in one file, whatever memory the tensors share."""

import errno
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError

from unitmargin.foundation.tensors import read_header, read_tensors, spool_rows, write_tensors


def test_tensors_and_header_return(tmp_path: Path) -> None:
    whole = torch.arange(6.0).view(2, 3)
    tensors = {"whole": whole, "turned": whole.mT, "part": whole[0], "again": whole}
    write_tensors(tmp_path / "a.safetensors", tensors, {"word": "ä"})
    read, header = read_tensors(tmp_path / "a.safetensors")
    assert header == {"word": "ä"}
    assert read.keys() == tensors.keys()
    assert all(torch.equal(read[name], tensor) for name, tensor in tensors.items())


def test_the_same_content_is_the_same_file(tmp_path: Path) -> None:
    header = {f'ä"\n\x1f\x7f\u2028{index}': "\\" * index for index in range(20)}
    tensors = {f"{index}.ö": torch.arange(index + 1) for index in range(20)}
    for name in ("one", "two"):
        write_tensors(tmp_path / name, tensors, dict(reversed(header.items())))
        assert read_tensors(tmp_path / name)[1] == header
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("content", [b"", b"no tensors at all"])
def test_damaged_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"a.safetensors is damaged"):
        read_tensors(tmp_path / "a.safetensors")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Error while serializing: I/O error: No space left on device (os error 28)", 28),
        ('IoError(Os { code: 28, kind: StorageFull, message: "No space left" })', 28),
        ("Error while serializing: I/O error: of another kind", errno.EIO),
    ],
)
def test_a_writer_that_is_refused_by_the_system_says_so_of_the_file(
    message: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise SafetensorError(message)

    monkeypatch.setattr("unitmargin.foundation.tensors.save_file", refuse)
    file = tmp_path / "a.safetensors"
    with pytest.raises(OSError, match="a.safetensors") as raised:
        write_tensors(file, {"a": torch.zeros(2)}, {})
    assert (raised.value.errno, raised.value.filename) == (code, str(file))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_grows_too_large_is_named(tmp_path: Path) -> None:
    script = (
        "import resource, sys, torch\n"
        "from pathlib import Path\n"
        "from unitmargin.foundation.tensors import write_tensors\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n    write_tensors(Path(sys.argv[1]), {'a': torch.zeros(1000)}, {})\n"
        "except OSError as error:\n    print(error.errno, error.filename)\n"
    )
    file = tmp_path / "a.safetensors"
    done = subprocess.run(
        [sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{errno.EFBIG} {file}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", [(3,), (1, 2, 2), (3, 32, 32)])
def test_spooled_rows_are_the_file_of_the_whole_tensor(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    whole = torch.rand(7, *shape)
    write_tensors(tmp_path / "whole.safetensors", {"inputs": whole}, {})
    with spool_rows(tmp_path / "not/yet") as rows:
        for part in whole.split(3):
            rows.add(part.numpy())
        assert [path.name for path in tmp_path.iterdir()] == ["whole.safetensors"]
        rows.write(tmp_path / "not/yet/rows.safetensors", "inputs")
    written = (tmp_path / "not/yet/rows.safetensors").read_bytes()
    assert written == (tmp_path / "whole.safetensors").read_bytes()
    assert torch.equal(read_tensors(tmp_path / "not/yet/rows.safetensors")[0]["inputs"], whole)


def test_spooled_rows_take_no_memory(tmp_path: Path) -> None:
    part = np.ones((1000, 250), np.float32)  # 1 MB
    tracemalloc.start()
    with spool_rows(tmp_path) as rows:
        for _ in range(30):
            rows.add(part)
        rows.write(tmp_path / "rows.safetensors", "inputs")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e6 < 30e6 < (tmp_path / "rows.safetensors").stat().st_size


def test_a_spool_that_is_refused_by_the_system_names_its_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="disk is full") as raised, spool_rows(tmp_path / "new"):
        raise OSError(errno.ENOSPC, "disk is full")
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_not_called_damaged(tmp_path: Path) -> None:
    for read in (read_header, read_tensors):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "none.safetensors")
        with pytest.raises(IsADirectoryError):
            read(tmp_path)
