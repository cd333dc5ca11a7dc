"""New inputs from files, batch by batch: images, arrays and tables that fit a network."""

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int64

from unitmargin.data.arrays import SPLITS
from unitmargin.data.cells import PARQUET, TABLES
from unitmargin.data.encoding import Encoding
from unitmargin.data.files import DataError, members
from unitmargin.data.image_options import ImageOptions
from unitmargin.data.layout import HELD_OUT, IMAGE_SUFFIXES, TRAIN, Parts
from unitmargin.data.parquet import image_shards, read_image_rows
from unitmargin.data.split import Split
from unitmargin.data.stream_arrays import array_names, is_arrays, read_arrays
from unitmargin.data.stream_images import read_image_shards, read_images
from unitmargin.data.stream_items import Item, Wanted
from unitmargin.data.stream_tables import read_encoded, read_table

RELEASE = ".bin"
"""How files of the binary CIFAR releases end."""

Reader = Callable[[Path, Wanted], Iterator[Item]]


class InputBatch(NamedTuple):
    """Inputs as they enter a network.

    Attributes:
        inputs: float32, in the units of the network.
        labels: true classes, -1 where none is known.
        sources: where each input is found again; empty where the samples are a data set's own.
    """

    inputs: Float32[np.ndarray, "batch *shape"]
    labels: Int64[np.ndarray, " batch"]
    sources: tuple[str, ...]


def read_inputs(
    path: Path,
    in_shape: tuple[int, ...],
    classes: tuple[str, ...],
    batch_size: int,
    images: ImageOptions | None = None,
    encoding: Encoding | None = None,
) -> Iterator[InputBatch]:
    """The inputs in a file or folder, for a network of that input shape and these classes.

    - Images: a folder, or a tar or zip archive, of images or of one folder a class; or one image.
      They are resized as ``images`` says, and bytes are divided by 255. A folder is read in the
      order of the names, an archive in its own.
    - Images in Parquet files: a ``.parquet`` file, or a folder of them, with a column of images;
      a column of labels is optional. Resized and divided as other images.
    - Arrays: a ``.npy`` file, or a ``.npz`` file with ``x`` or ``inputs`` and, if known, ``y`` or
      ``labels``. uint8 is divided by 255, floating numbers are rounded to float32.
    - Tables: a ``.csv`` file of numbers, one input a row, in the order of the network's inputs; a
      header is optional, its column ``label`` holds class numbers or names.
    - With an ``encoding``, of a network that was trained on a table: a ``.csv`` or ``.parquet``
      file with the columns of that table by name, in its units; they are encoded as it was.

    Guarantee: finite float32 numbers of the shape wanted; nothing is left out, without ``images``
    nothing is resized, and without an encoding nothing is rescaled.
    Memory is that of one batch, whatever the file's size.

    Raises:
        DataError: anything else; the message names the file, and where in it.

    Example:
        >>> for batch in read_inputs(Path("photos"), (3, 32, 32), names, 256):  # doctest: +SKIP
        ...     print(batch.sources)
    """
    items = _reader(path, encoding)(path, Wanted(in_shape, classes, images or ImageOptions()))
    first = next(items, None)
    if first is None:
        raise DataError(f"{path}: must hold one input at least, got none; name where they lie")
    every = chain([first], items)
    while some := list(islice(every, batch_size)):
        inputs = np.stack([item.numbers for item in some])
        finite = np.isfinite(inputs).reshape(len(some), -1).all(1)
        if not finite.all():
            raise DataError(
                f"{path}: inputs must be finite in float32, got NaN or infinity in "
                f"{some[int(finite.argmin())].source}; remove or repair it, or write it in a "
                "larger unit"
            )
        labels = np.array([item.label for item in some], np.int64)
        yield InputBatch(inputs, labels, tuple(item.source for item in some))


def holds_splits(path: Path) -> bool:
    """Whether a file or folder is laid out as a data set, with train and test samples.

    Images of one side alone are none, which may be new inputs: those of the train samples lie in
    a folder beside that of the test or held-out ones. Cost: an archive is read to the first file
    that says so, of images in folders of one side alone to its end.
    """
    if not path.exists():
        return False
    if shards := image_shards(path):
        splits = {shard.split for shard in shards}
        return TRAIN in splits and bool(splits & {*HELD_OUT})
    if is_arrays(path):
        return any(f"{axis}_{split}" in array_names(path) for axis in "xy" for split in SPLITS)
    if not _holds_files(path):
        return False
    sides: dict[Parts, set[str]] = {}
    for member in members(path):
        *folders, file = member.name.split("/")
        if member.is_folder:
            continue
        if file.endswith(RELEASE):
            return True
        depth = next((d for d, name in enumerate(folders[:-1]) if name in (TRAIN, *HELD_OUT)), None)
        if depth is not None:
            beside = sides.setdefault(tuple(folders[:depth]), set())
            beside.add(folders[depth])
            if TRAIN in beside and len(beside) > 1:
                return True
        elif Path(file).suffix.lower() in IMAGE_SUFFIXES:
            return False
    return False


def holds_images(path: Path, split: Split, label: str | None = None) -> bool:
    """Whether a folder or archive holds every image of a split, by class, name and content; of
    Parquet files, whose images have no names of their own, by class and content.

    ``label`` is the column of labels of Parquet files. Cost: the images are read.
    """
    if shards := image_shards(path):
        contents = {(image.label, image.sha256) for image in (*split.train, *split.test)}
        for shard in shards:
            for content, word in read_image_rows(path, shard, label):
                contents.discard((word or "", hashlib.sha256(content).hexdigest()))
        return not contents
    if not _holds_files(path):
        return False
    wanted = {(image.label, image.file): image.sha256 for image in (*split.train, *split.test)}
    held: dict[tuple[str, str], bool] = {}
    for member in members(path):
        *folders, file = member.name.split("/")
        place = folders[-1] if folders else "", file
        if not member.is_folder and place in wanted:  # the last one of a name is the image
            held[place] = hashlib.sha256(member.read()).hexdigest() == wanted[place]
    return len(held) == len(wanted) and all(held.values())


def _holds_files(path: Path) -> bool:
    """Whether it is a folder or may be an archive, not one table, image or file of arrays."""
    single = is_arrays(path) or path.suffix.lower() in {*TABLES, *IMAGE_SUFFIXES}
    return path.is_dir() or (path.is_file() and not single)


def _reader(path: Path, encoding: Encoding | None) -> Reader:
    suffix = path.suffix.lower()
    is_table = suffix in TABLES and path.is_file()
    if encoding is not None:
        if not is_table:
            raise DataError(
                f"{path}: must be a .csv or .parquet file with the columns that the network was "
                "trained on, found none; check the path, or write a table"
            )
        return partial(read_encoded, encoding=encoding)
    if image_shards(path):
        return read_image_shards
    if is_table and suffix == PARQUET:
        raise DataError(
            f"{path}: must hold a column of images for a network that was not trained on a table, "
            "got a Parquet file without; write its numbers as .csv or .npy"
        )
    if not path.exists():
        raise DataError(
            f"{path}: must be a folder or archive of images, a .npz, .npy or .csv file, found "
            "none; check the path"
        )
    if is_arrays(path):
        return read_arrays
    return read_table if is_table else read_images
