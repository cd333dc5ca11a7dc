"""Tensors and words in one file, whatever memory the tensors share."""

from pathlib import Path

import pytest
import torch

from unitmargin.foundation.tensors import read_tensors, write_tensors


def test_tensors_and_header_return(tmp_path: Path) -> None:
    whole = torch.arange(6.0).view(2, 3)
    tensors = {"whole": whole, "turned": whole.mT, "part": whole[0], "again": whole}
    write_tensors(tmp_path / "a.safetensors", tensors, {"word": "ä"})
    read, header = read_tensors(tmp_path / "a.safetensors")
    assert header == {"word": "ä"}
    assert read.keys() == tensors.keys()
    assert all(torch.equal(read[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize("content", [b"", b"no tensors at all"])
def test_damaged_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"a.safetensors is damaged"):
        read_tensors(tmp_path / "a.safetensors")
