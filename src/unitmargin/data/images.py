"""Folders and archives of images, with one folder for each class."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int64

from unitmargin.data.cells import PARQUET
from unitmargin.data.dataset import Dataset
from unitmargin.data.decoded import decode_images
from unitmargin.data.files import DataError, members, progress_bar
from unitmargin.data.image_options import ImageOptions
from unitmargin.data.kept import (
    Kept,
    find_arrays,
    keep_arrays,
    save_array,
    unchanged,
)
from unitmargin.data.known import Entries, keeps_others, known_images
from unitmargin.data.layout import Layout, read_layout
from unitmargin.data.npy import Pages, as_mapped, map_array
from unitmargin.data.origin import Origin
from unitmargin.data.parquet import image_shards, read_image_rows, read_shards
from unitmargin.data.remembered import remembered, remembered_fingerprint, source_memory
from unitmargin.data.samples import BYTES, Samples
from unitmargin.data.shards import Shard, find_shards, fingerprint_shards, split_shards
from unitmargin.data.split import Split, SplitImage, draw_split, find_split
from unitmargin.foundation.numbers import shown

CACHE_VERSION = 6
"""Part of the name of a cached file: raise it when the same images give other arrays."""


UNSPLIT = -1
"""Stands for the side of a sample of a data set without train and test samples."""


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

    The images are decoded once, in several processes if they are many, into a file of the cache
    folder (see :func:`keep_arrays`); inputs are mapped from it. They are decoded again when the
    data changes or the file is damaged; what an interrupted process has decoded is not. Nothing is
    extracted. Images that ``split`` does not know are not decoded, whatever they are.

    Shapes: inputs are uint8 ``(n, channels, height, width)`` with scale 255; without
    ``options.channels`` one channel if every image is 8-bit grey, else three.

    Raises:
        DataError: what is no image or would be cut as one, an image of another size without
            ``options.resize``, what :func:`read_layout` refuses, a symbolic link, or a damaged
            archive; what :func:`read_shards` refuses; options or a split that the data have no use
            for; no room in the cache folder.

    Cost: memory of some tens of bytes an image, of data without a split a kilobyte.

    Example:
        >>> images(Path("flowers.tar.xz")).classes  # doctest: +SKIP
        ('rose', 'tulip')
    """
    options = ImageOptions() if options is None else options
    form = f"{options.resize or 0}-{options.channels or 0}"
    shards = find_shards(path) if path.suffix.lower() == PARQUET else image_shards(path)
    if options.label is not None and not shards:
        raise DataError(
            f"{path}: label must be left out for images in folders of their classes, got "
            f"{shown(options.label)}; leave it out, or name Parquet files"
        )
    source = Source(path, shards, options, split)
    fingerprint = partial(_content, path, shards, options, cache)
    content = fingerprint()
    found = f"images-{CACHE_VERSION}-{content}-{form}"
    known = split is not None and _has_others(source, split, cache, found)
    kept = keep_arrays(
        cache,
        _known_name(found, split) if split and known else found,
        unchanged(path, content, fingerprint, lambda folder: _make(folder, source, name, known)),
    )
    return _dataset(kept, name, path, options, split)


@dataclass(frozen=True)
class Source:
    """Where images are read from, how, and the split that was drawn of them, if any."""

    path: Path
    shards: list[Shard]
    options: ImageOptions
    split: Split | None

    @cached_property
    def layout(self) -> Layout:
        """Where all images lie."""
        if self.shards:
            return read_shards(self.path, self.options.label)
        return read_layout(self.path, None if self.split is None else self.split.classes)

    @cached_property
    def known(self) -> Layout:
        """Where the images lie that the split knows: all are read to find them."""
        if self.split is None or self.layout.split:
            return self.layout
        return known_images(self.layout, self.entries("reading"), self.split, self.path)

    def entries(self, doing: str) -> Entries:
        """All files, or images of Parquet files, under a bar that says what is done with them."""
        words = f"{doing} {self.path.name}"
        if not self.shards:
            return _of_files(self.path, words)
        return _of_shards(
            self.path, self.shards, self.options.label, len(self.layout.places), words
        )


def _has_others(source: Source, split: Split, cache: Path | None, found: str) -> bool:
    """Whether there are images or classes that a split does not know. All are read where no decoded
    ones tell; data that come split have a fault that is found later."""
    if kept := find_arrays(cache, found):
        return kept.arrays["test"].min() == UNSPLIT and keeps_others(kept, split)
    if find_arrays(cache, _known_name(found, split)):
        return True
    return source.known != source.layout


def _known_name(found: str, split: Split) -> str:
    """The name under which images of a split alone are kept."""
    return f"{found}-{hashlib.sha256(json.dumps(split.model_dump()).encode()).hexdigest()}"


def _content(path: Path, shards: list[Shard], options: ImageOptions, cache: Path | None) -> str:
    """The fingerprint of the data, remembered in the cache folder while no file changes."""
    if not shards:
        return remembered_fingerprint(path, cache)
    label = options.label
    files = [(shard.name, shard.file) for shard in shards]
    compute = partial(fingerprint_shards, shards, label)
    return remembered(source_memory(cache, f"{path.resolve()}\0{label!r}"), files, compute)


def _make(folder: Path, source: Source, name: str, known: bool) -> None:
    """Decode all images, or those that the split knows, into a folder of the cache; raises for what
    is no data set."""
    path, options, split = source.path, source.options, source.split
    layout = source.known if known else source.layout
    decode_images(folder, path, source.entries("decoding"), layout, options)
    places, ranks = layout.places.values(), {c: rank for rank, c in enumerate(layout.classes)}
    tests = [place.test if layout.split else UNSPLIT for place in places]
    save_array(folder, "test", np.array(tests, np.int8))
    save_array(folder, "rank", np.array([ranks[place.label] for place in places], np.int64))
    save_array(folder, "name", np.array([place.file for place in places]))
    save_array(folder, "classes", np.array(layout.classes))
    arrays = {file.stem: map_array(file) for file in folder.glob("*.npy")}
    _dataset(Kept(folder, arrays, {"x": ""}), name, path, options, split)


def _of_files(path: Path, progress: str) -> Iterator[tuple[str, Callable[[], bytes]]]:
    for member in members(path, progress):
        if not member.is_folder:
            yield member.name, member.read


def _of_shards(
    path: Path, shards: list[Shard], label: str | None, count: int, progress: str
) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with progress_bar(count, progress, "image") as bar:
        for shard in chain(*split_shards(path, shards)):
            for number, (content, _) in enumerate(read_image_rows(path, shard, label)):
                yield shard.row(number), partial(bytes, content)
                bar.update()


def _dataset(
    kept: Kept, name: str, path: Path, options: ImageOptions, split: Split | None
) -> Dataset:
    test, rank = kept.arrays["test"], kept.arrays["rank"]
    classes = tuple(map(str, kept.arrays["classes"]))
    if test.min() != UNSPLIT:
        _require_no_split(path, options, split)
        sides = [np.flatnonzero(test == side) for side in (0, 1)]
    else:
        labels = [classes[number] for number in rank]
        hashes = [digest.tobytes().hex() for digest in kept.arrays["sha256"]]
        if split is None:
            drawn = draw_split(labels, hashes, *options.choice(), path)
            sides = [np.flatnonzero(~drawn), np.flatnonzero(drawn)]
            files = kept.arrays["name"].tolist()
            train_images, test_images = (
                [SplitImage(label=labels[i], file=files[i], sha256=hashes[i]) for i in side]
                for side in sides
            )
            split = Split(classes=list(classes), train=train_images, test=test_images)
        else:
            sides = [np.array(side, np.int64) for side in find_split(split, labels, hashes, path)]
    own = classes if split is None else tuple(split.classes)
    try:
        train, held_out = (_samples(kept, side, own) for side in sides)
        return Dataset(name, train, held_out, own, split)
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


def _samples(kept: Kept, chosen: Int64[np.ndarray, " n"], classes: tuple[str, ...]) -> Samples:
    """The images at some places: a part of the file where they lie side by side."""
    numbers = {label: number for number, label in enumerate(classes)}
    numbering = np.array([numbers.get(label, -1) for label in map(str, kept.arrays["classes"])])
    labels = torch.from_numpy(numbering[kept.arrays["rank"][chosen]].astype(np.int64))
    inputs, sha256 = as_mapped(kept.arrays["x"]), kept.sha256["x"]
    whence = kept.folder, Pages(kept.arrays["x"])
    first, last = int(chosen[0]), int(chosen[-1]) + 1
    if np.array_equal(chosen, np.arange(first, last)):
        part = inputs[first:last]
        return Samples(part, labels, BYTES, origin=Origin(part, f"{sha256} from {first}", *whence))
    origin = Origin(inputs, sha256, *whence)
    return Samples(inputs, labels, BYTES, rows=torch.from_numpy(chosen), origin=origin)
