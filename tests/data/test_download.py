"""Downloads: fetched once, refused at another digest, and nothing left behind by a failure."""

import hashlib
from pathlib import Path

import pytest

from unitmargin.data.download import download
from unitmargin.data.files import DataError

CONTENT = b"data" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def url(tmp_path: Path) -> str:
    source = tmp_path / "source.bin"
    source.write_bytes(CONTENT)
    return source.as_uri()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "kept"
    made.mkdir()
    return made


def test_a_file_is_fetched_once(url: str, folder: Path, tmp_path: Path) -> None:
    file = download(url, SHA256, folder)
    assert file == folder / "source.bin"
    assert file.read_bytes() == CONTENT
    (tmp_path / "source.bin").unlink()
    assert download(url, SHA256, folder) == file


def test_a_damaged_copy_is_fetched_again(url: str, folder: Path) -> None:
    (folder / "source.bin").write_bytes(CONTENT[:-1])
    assert download(url, SHA256, folder).read_bytes() == CONTENT


def test_another_digest_is_refused(url: str, folder: Path) -> None:
    with pytest.raises(DataError, match=f"must have SHA-256 {'0' * 64}, got {SHA256}; .*its path"):
        download(url, "0" * 64, folder)
    assert list(folder.iterdir()) == []


def test_a_failed_download_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the download failed"):
        download((tmp_path / "absent").as_uri(), SHA256, folder)
    assert list(folder.iterdir()) == []
