"""The cache folder, and downloads: fetched once, refused at another digest, nothing left behind."""

import hashlib
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer
from threading import Thread

import pytest

from unitmargin.data.cache import cache_folder, download
from unitmargin.data.files import DataError

CONTENT = b"data" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def test_the_argument_goes_before_the_variable_and_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("UNITMARGIN_CACHE", str(tmp_path / "variable"))
    assert cache_folder(tmp_path / "argument") == tmp_path / "argument"
    assert cache_folder() == tmp_path / "variable"
    monkeypatch.delenv("UNITMARGIN_CACHE")
    assert cache_folder() == tmp_path / ".cache/unitmargin"
    assert cache_folder().is_dir()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match=r"cache: must be a folder .*set UNITMARGIN_CACHE"):
        cache_folder(tmp_path / "file" / "cache")


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


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", b"no\r\n"])
def test_a_broken_answer_is_a_failed_download(folder: Path, answer: bytes) -> None:
    class Server(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1000)
            self.request.sendall(answer)

    with TCPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(DataError, match="the download failed|must have SHA-256"):
            download(f"http://127.0.0.1:{server.server_address[1]}/a.bin", SHA256, folder)
    assert not [*folder.iterdir()]
