"""Tensors and words in one file, whatever memory the tensors share."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from unitmargin.foundation.tensors import read_tensors, write_tensors


def test_tensors_and_header_return(tmp_path: Path) -> None:
    whole = torch.arange(6.0).view(2, 3)
    tensors = {"whole": whole, "turned": whole.mT, "part": whole[0], "again": whole}
    write_tensors(tmp_path / "a.safetensors", tensors, {"word": "ä"})
    read, header = read_tensors(tmp_path / "a.safetensors")
    assert header == {"word": "ä"}
    assert read.keys() == tensors.keys()
    assert all(torch.equal(read[name], tensor) for name, tensor in tensors.items())


def test_the_same_content_is_the_same_file(tmp_path: Path) -> None:
    header = {f"ä\"\n\x1f\x7f\u2028{index}": "\\" * index for index in range(20)}
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
