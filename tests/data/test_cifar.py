"""CIFAR-10 and CIFAR-100: the binary release byte by byte, and images in its place."""

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from data.tiny import png, tar_bytes, write_folder

from unitmargin.data import cifar
from unitmargin.data.cifar import CIFAR10, CIFAR100, cifar10, cifar100
from unitmargin.data.files import DataError

NAMES10 = b"airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n"
NAMES100 = b"".join(b"class%d\n" % label for label in range(100))


def record(*labels: int, value: int) -> bytes:
    """One record, whose red, green and blue planes hold value, value + 1 and value + 2."""
    planes = [bytes([value + channel]) * 1024 for channel in range(3)]
    return bytes(labels) + b"".join(planes)


def release10() -> dict[str, bytes]:
    batches = {f"data_batch_{i}.bin": record(i, value=10 * i) for i in range(5, 0, -1)}
    test = record(9, value=100) + record(0, value=110)
    files = batches | {"test_batch.bin": test, "batches.meta.txt": NAMES10, "readme.html": b"<p>"}
    return {f"cifar-10-batches-bin/{name}": content for name, content in files.items()}


def release100() -> dict[str, bytes]:
    files = {
        "train.bin": record(19, 99, value=1) + record(3, 42, value=5),
        "test.bin": record(0, 7, value=9),
        "fine_label_names.txt": NAMES100,
        "coarse_label_names.txt": b"one\n",
    }
    return {f"cifar-100-binary/{name}": content for name, content in files.items()}


def packed(path: Path, files: dict[str, bytes]) -> Path:
    path.write_bytes(gzip.compress(tar_bytes(files)))
    return path


@pytest.mark.parametrize("kind", ["archive", "folder", "files"])
def test_cifar10_is_read_in_the_order_of_its_files(tmp_path: Path, kind: str) -> None:
    write = packed if kind == "archive" else write_folder
    path = write(tmp_path / "data", release10())
    dataset = cifar10(path / "cifar-10-batches-bin" if kind == "files" else path)
    assert dataset.name == "cifar10"
    assert dataset.in_shape == (3, 32, 32)
    assert dataset.train.labels.tolist() == [1, 2, 3, 4, 5]
    assert dataset.train.inputs[1, :, 5, 7].tolist() == [20, 21, 22]
    assert dataset.test.labels.tolist() == [9, 0]
    assert dataset.classes == tuple(NAMES10.decode().split())
    assert dataset.train.scale == 255


def test_rows_come_before_columns(tmp_path: Path) -> None:
    image = np.arange(3 * 32 * 32, dtype=np.uint16).astype(np.uint8).reshape(3, 32, 32)
    files = release10() | {"cifar-10-batches-bin/test_batch.bin": b"\x03" + image.tobytes()}
    assert torch.equal(
        cifar10(packed(tmp_path / "a", files)).test.inputs[0], torch.from_numpy(image)
    )


def test_cifar100_takes_the_fine_label(tmp_path: Path) -> None:
    dataset = cifar100(packed(tmp_path / "a", release100()))
    assert dataset.train.labels.tolist() == [99, 42]
    assert dataset.test.labels.tolist() == [7]
    assert dataset.test.inputs[0, :, 0, 0].tolist() == [9, 10, 11]
    assert dataset.classes[42] == "class42"
    assert dataset.n_classes == 100


def test_both_releases_may_lie_in_one_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has kept arrays of its own."""
    monkeypatch.setattr(cifar, "LARGE", 1)
    path = write_folder(tmp_path / "both", release10() | release100())
    for _ in range(2):
        assert cifar10(path).train.labels.tolist() == [1, 2, 3, 4, 5]
        assert cifar100(path).train.labels.tolist() == [99, 42]


def test_without_names_classes_are_numbers(tmp_path: Path) -> None:
    files = {name: content for name, content in release10().items() if name.endswith(".bin")}
    assert cifar10(write_folder(tmp_path / "a", files)).classes == tuple("0123456789")


def test_the_archive_is_downloaded_to_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = packed(tmp_path / "cifar-10-binary.tar.gz", release10())
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    release = replace(CIFAR10, url=source.as_uri(), sha256=digest)
    monkeypatch.setattr(cifar, "CIFAR10", release)
    assert len(cifar10().train) == 5
    source.unlink()
    assert len(cifar10().train) == 5
    assert [file.name for file in cache.iterdir()] == ["cifar-10-binary.tar.gz"]


def test_a_download_with_another_digest_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = packed(tmp_path / "cifar-10-binary.tar.gz", release10())
    monkeypatch.setattr(cifar, "CIFAR10", replace(CIFAR10, url=source.as_uri()))
    with pytest.raises(DataError, match=f"must have SHA-256 {CIFAR10.sha256}"):
        cifar10()


def test_the_official_archives_come_over_https() -> None:
    assert CIFAR10.url == "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
    assert CIFAR100.url == "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"
    assert len(CIFAR10.sha256) == len(CIFAR100.sha256) == 64


def images_of(classes: list[str], size: int = 32) -> dict[str, bytes]:
    return {
        f"{split}/{label}/1.png": png(value, size=(size, size))
        for split in ("train", "test")
        for value, label in enumerate(classes)
    }


def test_images_serve_as_well(tmp_path: Path) -> None:
    dataset = cifar10(packed(tmp_path / "a", images_of(NAMES10.decode().split())))
    assert dataset.name == "cifar10"
    assert dataset.classes == tuple(NAMES10.decode().split())
    assert dataset.train.labels.tolist() == list(range(10))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (images_of(["a", "b"]), r"10 classes, got \(3, 32, 32\) in 2; begin with `unitmargin init"),
        (images_of(list("abcdefghij"), 8), r"inputs of shape \(3, 32, 32\).*got \(3, 8, 8\) in 10"),
        ({"cifar/data_batch_1": b"pickle"}, "got neither"),
        (release100(), "must hold data_batch_1.bin, .*got no data_batch_1.bin"),
        (
            release10() | {"cifar-10-batches-bin/data_batch_3.bin": bytes(3072)},
            "data_batch_3.bin must hold whole records of 3073 bytes, got 3072",
        ),
        (release10() | {"cifar-10-batches-bin/test_batch.bin": b""}, "test_batch.bin must hold wh"),
        (
            release10() | {"cifar-10-batches-bin/batches.meta.txt": b"a\nb\n"},
            "batches.meta.txt must name 10 classes, got 2",
        ),
        (
            release10() | {"cifar-10-batches-bin/test_batch.bin": record(10, value=0)},
            "every test label must be < 10",
        ),
    ],
)
def test_cifar10_refuses_and_names_the_file(
    tmp_path: Path, files: dict[str, bytes], message: str
) -> None:
    path = packed(tmp_path / "a", files)
    with pytest.raises(DataError, match=f"{path}.*{message}"):
        cifar10(path)


def test_a_missing_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="absent: must be a folder or a tar or zip archive"):
        cifar10(tmp_path / "absent")
