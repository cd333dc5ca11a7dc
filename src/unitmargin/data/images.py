"""Folders and archives of images, with one folder for each class."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int64, UInt8

from unitmargin.data.arrays import read_npz, write_arrays
from unitmargin.data.cache import cache_folder
from unitmargin.data.cells import PARQUET
from unitmargin.data.decoding import Pixels, Planes, decode
from unitmargin.data.files import DataError, fingerprint, members, progress_bar
from unitmargin.data.image_options import ImageOptions
from unitmargin.data.layout import Layout, read_layout
from unitmargin.data.parquet import image_shards, read_image_rows, read_shards
from unitmargin.data.samples import BYTES, Dataset, Samples
from unitmargin.data.shards import Shard, find_shards, fingerprint_shards, split_shards
from unitmargin.data.split import Split, SplitImage, draw_split, find_split
from unitmargin.foundation.numbers import shown

CACHE_VERSION = 4
"""Part of the name of a cached file: raise it when the same images give other arrays."""


class MixedSizesError(DataError):
    """Images of several sizes where they have to have one."""


def images(
    path: Path,
    cache: Path | None = None,
    name: str = "images",
    options: ImageOptions | None = None,
    split: Split | None = None,
) -> Dataset:
    """Images that lie in a folder for each class, below ``train`` and ``test`` or without a split.

    ``path`` is a folder or a tar or zip archive, with or without one folder around; one tree gives
    one data set, as a folder and as an archive. Without ``test`` its place is taken by ``val``,
    which is left out beside it. Without ``train`` and ``test`` a share of the images of each class
    is kept for the test (:func:`draw_split`), or those that ``split`` names. Classes are sorted by
    name, samples by class and file name. Files and folders whose name begins with a dot, and what
    file managers leave, are left out. Hard links are files; symbolic ones are refused.

    ``path`` may also be a Parquet file with a column of images and one of labels, or a folder of
    such files (:func:`read_shards`); their names then say which are train and test samples, and
    samples lie in the order of the rows.

    The images are decoded once, in several processes if they are many; the arrays are kept in the
    cache folder (see :func:`cache_folder`), and are made again when the data changes or the kept
    file is damaged. Nothing is extracted.

    Shapes: inputs are uint8 ``(n, channels, height, width)`` with scale 255; without
    ``options.channels`` one channel if every image is 8-bit grey, else three.

    Raises:
        DataError: what is no image or would be cut as one, an image of another size without
            ``options.resize``, what :func:`read_layout` refuses, a symbolic link, or a damaged
            archive; what :func:`read_shards` refuses; options or a split that the data have no use
            for.

    Example:
        >>> images(Path("flowers.tar.xz")).classes  # doctest: +SKIP
        ('rose', 'tulip')
    """
    options = ImageOptions() if options is None else options
    form = f"{options.resize or 0}-{options.channels or 0}"
    shards = find_shards(path) if path.suffix == PARQUET else image_shards(path)
    if options.label is not None and not shards:
        raise DataError(
            f"{path}: label must be left out for images in folders of their classes, got "
            f"{shown(options.label)}; leave it out, or name Parquet files"
        )
    content = fingerprint_shards(shards, options.label) if shards else fingerprint(path)
    kept = cache_folder(cache) / f"images-{CACHE_VERSION}-{content}-{form}.npz"
    try:
        decoded = _read(kept)
    except DataError:
        kept.unlink(missing_ok=True)
        decoded = _decoded(path, shards, options)
        dataset = _dataset(decoded, name, path, options, split)
        write_arrays(kept, decoded._asdict())
        return dataset
    return _dataset(decoded, name, path, options, split)


class _Decoded(NamedTuple):
    """All images, in the order of the samples; ``test`` is -1 where there is no split, ``rank``
    orders the classes."""

    x: UInt8[np.ndarray, "n channels height width"]
    test: Int64[np.ndarray, " n"]
    label: np.ndarray
    rank: Int64[np.ndarray, " n"]
    name: np.ndarray
    sha256: np.ndarray


def _read(kept: Path) -> _Decoded:
    arrays = read_npz(kept)
    if set(arrays) != set(_Decoded._fields) or len({len(array) for array in arrays.values()}) != 1:
        raise DataError(f"{kept}: must hold decoded images, got {sorted(arrays)}; remove it")
    return _Decoded(**arrays)


def _decoded(path: Path, shards: list[Shard], options: ImageOptions) -> _Decoded:
    layout = read_shards(path, options.label) if shards else read_layout(path)
    digests: dict[str, str] = {}
    found: dict[str, Pixels] = {}
    names: list[str] = []
    entries = (
        _of_shards(path, shards, options.label, len(layout.places)) if shards else _of_files(path)
    )
    contents = _contents(path, entries, layout, digests, names)
    for number, image in enumerate(decode(contents, options.resize, options.channels)):
        found[names[number]] = image
        _require_size(f"{path}: {names[number]}", image.shape, found[names[0]].shape)
    grey = all(image.ndim == 2 for image in found.values())
    places = layout.places.values()
    ranks = {label: rank for rank, label in enumerate(layout.classes)}
    return _Decoded(
        x=np.stack([_planes(found.pop(name), grey) for name in layout.places]),
        test=np.array([place.test if layout.split else -1 for place in places], np.int64),
        label=np.array([place.label for place in places]),
        rank=np.array([ranks[place.label] for place in places], np.int64),
        name=np.array([place.file for place in places]),
        sha256=np.array([digests[name] for name in layout.places]),
    )


def _of_files(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    for member in members(path, progress=f"decoding {path.name}"):
        if not member.is_folder:
            yield member.name, member.read


def _of_shards(
    path: Path, shards: list[Shard], label: str | None, count: int
) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with progress_bar(count, f"decoding {path.name}", "image") as bar:
        for shard in chain(*split_shards(path, shards)):
            for number, (content, _) in enumerate(read_image_rows(path, shard, label)):
                yield shard.row(number), partial(bytes, content)
                bar.update()


def _contents(
    path: Path,
    entries: Iterable[tuple[str, Callable[[], bytes]]],
    layout: Layout,
    digests: dict[str, str],
    names: list[str],
) -> Iterator[tuple[str, bytes]]:
    """The images as they are encoded; their hashes and names are noted as they pass."""
    for name, read in entries:
        if name in layout.places:
            content = read()
            digests[name] = hashlib.sha256(content).hexdigest()
            names.append(name)
            yield f"{path}: {name}", content


def _require_size(name: str, size: tuple[int, ...], first: tuple[int, ...]) -> None:
    if size[:2] != first[:2]:
        before, got = (f"{height} x {width}" for height, width, *_ in (first, size))
        raise MixedSizesError(
            f"{name}: must have the size of the images before it, {before}, got {got} (height x "
            "width); resize them: in the recipe's [data], resize = 64 makes all 64 x 64"
        )


def _dataset(
    decoded: _Decoded, name: str, path: Path, options: ImageOptions, split: Split | None
) -> Dataset:
    _, firsts = np.unique(decoded.rank, return_index=True)
    classes = tuple(map(str, decoded.label[firsts]))
    if decoded.test.min() >= 0:
        _require_no_split(path, options, split)
        sides = [np.flatnonzero(decoded.test == side) for side in (0, 1)]
    elif split is None:
        samples = decoded.label.tolist(), decoded.sha256.tolist()
        drawn = draw_split(*samples, *options.choice(), path)
        sides = [np.flatnonzero(~drawn), np.flatnonzero(drawn)]
        train_images, test_images = _named(decoded, sides)
        split = Split(classes=list(classes), train=train_images, test=test_images)
    else:
        classes = tuple(split.classes)
        places = find_split(split, decoded.label.tolist(), decoded.sha256.tolist(), path)
        sides = [np.array(side, np.int64) for side in places]
    try:
        train, test = (_samples(decoded, side, classes) for side in sides)
        return Dataset(name, train, test, classes, split)
    except ValueError as fault:
        raise DataError(f"{path}: {fault}") from fault


def _require_no_split(path: Path, options: ImageOptions, split: Split | None) -> None:
    given = [name for name in ("test_share", "split_seed") if getattr(options, name) is not None]
    if given or split is not None:
        raise DataError(
            f"{path}: {given[0] if given else 'the split of the run'} must be left out for images "
            "that lie in folders of train and test samples, got both; leave it out, or name a "
            "folder without a split"
        )


def _named(decoded: _Decoded, sides: list[np.ndarray]) -> list[list[SplitImage]]:
    columns = [column.tolist() for column in (decoded.label, decoded.name, decoded.sha256)]
    every = [
        SplitImage(label=label, file=file, sha256=sha256)
        for label, file, sha256 in zip(*columns, strict=True)
    ]
    return [[every[place] for place in side] for side in sides]


def _samples(decoded: _Decoded, chosen: np.ndarray, classes: tuple[str, ...]) -> Samples:
    numbers = {label: number for number, label in enumerate(classes)}
    labels = [numbers[label] for label in decoded.label[chosen].tolist()]
    inputs = torch.from_numpy(np.ascontiguousarray(decoded.x[chosen]))
    return Samples(inputs, torch.tensor(labels, dtype=torch.int64), BYTES)


def _planes(image: Pixels, grey: bool) -> Planes:
    if grey:
        return image[None]
    coloured = image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
    return coloured.transpose(2, 0, 1)
