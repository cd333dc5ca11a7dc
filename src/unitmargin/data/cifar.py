"""CIFAR-10 and CIFAR-100, from the binary release or from images."""

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from unitmargin.data.arrays import LARGE, dataset_of_arrays, keep_dataset
from unitmargin.data.cache import cache_folder, download
from unitmargin.data.dataset import Dataset
from unitmargin.data.files import DataError, listing, members
from unitmargin.data.images import images
from unitmargin.data.kept import Arrays, save_array

IN_SHAPE = (3, 32, 32)


@dataclass(frozen=True)
class _Release:
    """A binary release: each record is the label bytes, the last one counts, then the image.

    ``sha256`` is that of the official archive.
    """

    name: str
    url: str
    sha256: str
    train_files: tuple[str, ...]
    test_files: tuple[str, ...]
    names_file: str
    label_bytes: int
    n_classes: int


CIFAR10 = _Release(
    name="cifar10",
    url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    train_files=tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    test_files=("test_batch.bin",),
    names_file="batches.meta.txt",
    label_bytes=1,
    n_classes=10,
)
CIFAR100 = _Release(
    name="cifar100",
    url="https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    sha256="58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    train_files=("train.bin",),
    test_files=("test.bin",),
    names_file="fine_label_names.txt",
    label_bytes=2,
    n_classes=100,
)


def cifar10(path: Path | None = None, cache: Path | None = None) -> Dataset:
    """CIFAR-10: ten classes of colour images of 32 x 32 pixels, in the order of the files.

    ``path`` is the binary archive, a folder of its ``.bin`` files, or images laid out as in
    :func:`images`. Without it the official archive is downloaded to the cache folder once, and
    must have its SHA-256.

    Shapes: inputs are uint8 ``(n, 3, 32, 32)`` with scale 255.

    Raises:
        DataError: a file that is damaged or holds something else; the message names it.

    Example:
        >>> cifar10(Path("cifar-10-binary.tar.gz")).in_shape  # doctest: +SKIP
        (3, 32, 32)
    """
    return _load(CIFAR10, path, cache)


def cifar100(path: Path | None = None, cache: Path | None = None) -> Dataset:
    """CIFAR-100 with its hundred fine classes; for the rest see :func:`cifar10`.

    Example:
        >>> cifar100(Path("cifar-100-binary.tar.gz")).n_classes  # doctest: +SKIP
        100
    """
    return _load(CIFAR100, path, cache)


def _load(release: _Release, path: Path | None, cache: Path | None) -> Dataset:
    if path is None:
        path = download(release.url, release.sha256, cache_folder(cache))
    if _is_binary(path):
        if _length(path) < LARGE:
            return dataset_of_arrays(_arrays(release, path), release.name, path)
        return keep_dataset(path, release.name, cache, partial(_unpack, release, path))
    dataset = images(path, cache, release.name)
    if dataset.in_shape != IN_SHAPE or dataset.n_classes != release.n_classes:
        raise DataError(
            f"{path}: {release.name} must have inputs of shape {IN_SHAPE} in {release.n_classes} "
            f"classes, got {dataset.in_shape} in {dataset.n_classes}; "
            f"begin with `unitmargin init {path}` if these are images of your own"
        )
    return dataset


def _length(path: Path) -> int:
    """Bytes of a file, or of the files in a folder."""
    files = [file for _, file in listing(path)] if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _unpack(release: _Release, path: Path, folder: Path) -> None:
    arrays = _arrays(release, path)
    dataset_of_arrays(arrays, release.name, path)  # raises for what is none
    for name, array in arrays.items():
        save_array(folder, name, array)


def _is_binary(path: Path) -> bool:
    """Whether the first file of either kind is one of the binary release, not an image."""
    for name in (member.name for member in members(path) if not member.is_folder):
        if name.endswith(".bin"):
            return True
        if {"train", "test"} & set(name.split("/")[:-1]):
            return False
    raise DataError(
        f"{path}: must hold .bin files of the binary release, or images as train/CLASS/image and "
        "test/CLASS/image, got neither (pickled releases are never opened); fetch the binary one, "
        f"or begin with `unitmargin init {path}` if these are images of your own"
    )


def _arrays(release: _Release, path: Path) -> Arrays:
    binaries = (*release.train_files, *release.test_files)
    contents = {}
    for member in members(path):
        name = member.name.rpartition("/")[2]
        if name in (*binaries, release.names_file) and not member.is_folder:
            contents[name] = member.read()
    if missing := [name for name in binaries if name not in contents]:
        raise DataError(
            f"{path}: the binary release of {release.name} must hold {', '.join(binaries)}, "
            f"got no {missing[0]}; fetch it again"
        )
    length = release.label_bytes + math.prod(IN_SHAPE)
    for file in binaries:
        if not contents[file] or len(contents[file]) % length:
            raise DataError(
                f"{path}: {file} must hold whole records of {length} bytes, got "
                f"{len(contents[file])} bytes; fetch it again"
            )
    arrays: Arrays = {}
    for split, files in (("train", release.train_files), ("test", release.test_files)):
        numbers = np.concatenate([np.frombuffer(contents[file], np.uint8) for file in files])
        records = numbers.reshape(-1, length)
        arrays[f"x_{split}"] = records[:, release.label_bytes :].reshape(-1, *IN_SHAPE)
        arrays[f"y_{split}"] = records[:, release.label_bytes - 1].astype(np.int64)
    names = [str(label) for label in range(release.n_classes)]
    if release.names_file in contents:
        names = contents[release.names_file].decode(errors="replace").split()
    if len(names) != release.n_classes:
        raise DataError(
            f"{path}: {release.names_file} must name {release.n_classes} classes, got "
            f"{len(names)}; fetch it again"
        )
    return arrays | {"classes": np.array(names)}
