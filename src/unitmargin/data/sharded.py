"""The data set of training images in shards and test images in others."""

import hashlib
from functools import partial
from pathlib import Path

import numpy as np
import torch

from unitmargin.data.dataset import Dataset
from unitmargin.data.decoded import decode_images
from unitmargin.data.files import DataError, missing_test
from unitmargin.data.image_options import ImageOptions
from unitmargin.data.kept import keep_arrays, save_array, unchanged
from unitmargin.data.layout import Layout, Place
from unitmargin.data.npy import Pages, as_mapped
from unitmargin.data.origin import Origin
from unitmargin.data.samples import BYTES, Samples
from unitmargin.data.shard_entries import entries
from unitmargin.data.tar_shards import (
    CACHE_VERSION,
    TarShards,
    expand_shards,
    open_shards,
    remembered_sha256,
)
from unitmargin.foundation.numbers import shown


def shards(
    path: Path, cache: Path | None = None, options: ImageOptions | None = None, test: str = ""
) -> Dataset:
    """Images in tar files (webdataset): the training images are streamed, the test images decoded.

    ``path`` and ``test`` are patterns such as ``train-{0000..0146}.tar``. Test images are decoded
    once into the cache folder, as :func:`images` does, since every verb reads them in order.

    Raises:
        ImportError: webdataset is missing.
        DataError: a shard of test images that is not there, a test image of a class or a size that
            training images do not have, and what :func:`open_shards` and :class:`Dataset` refuse.

    Example:
        >>> shards(Path("a-{00..19}.tar"), test="b-00.tar").classes  # doctest: +SKIP
        ('cat', 'dog')
    """
    options = ImageOptions() if options is None else options
    if not test:
        raise DataError(
            f"{path}: test must name shards of test images, got none; in the recipe's [data] write "
            'test = "test-{00..01}.tar"'
        )
    train = open_shards(str(path), options, cache)
    channels = options.channels if train.in_shape[0] == 1 else 3
    own = ImageOptions(resize=options.resize, channels=channels)
    try:
        files = expand_shards(test)
    except DataError as fault:
        raise missing_test(fault) from None
    fingerprint = partial(_fingerprint, files, own, train, cache)
    content = fingerprint()
    make = unchanged(Path(test), content, fingerprint, partial(_make, files, own, train))
    kept = keep_arrays(cache, f"test-{CACHE_VERSION}-{content}", make)
    inputs = as_mapped(kept.arrays["x"])
    origin = Origin(inputs, kept.sha256["x"], kept.folder, Pages(kept.arrays["x"]))
    labels = torch.from_numpy(np.array(kept.arrays["labels"], np.int64))
    try:
        held_out = Samples(inputs, labels, BYTES, origin=origin)
        return Dataset("shards", train, held_out, train.classes)
    except ValueError as fault:
        raise DataError(f"{path}: {fault}") from fault


def _fingerprint(
    files: tuple[Path, ...], options: ImageOptions, train: TarShards, cache: Path | None
) -> str:
    """SHA-256 of the content of test shards, how images are made, and the training shards."""
    hashes = "-".join(remembered_sha256(file, cache) for file in files)
    content = f"{hashes}-{options.resize or 0}-{options.channels or 0}-{train.sha256}"
    return hashlib.sha256(content.encode()).hexdigest()


def _make(files: tuple[Path, ...], options: ImageOptions, train: TarShards, folder: Path) -> None:
    found = [(name, word) for file in files for name, _, word in entries(file)]
    numbers = {label: number for number, label in enumerate(train.classes)}
    _require_different([name for name, _ in found])
    for name, word in found:
        if word not in numbers:
            raise DataError(
                f"{name} must be of a class of the training images, got {shown(word)}; leave it "
                "out, or add training images"
            )
    if not found:
        raise DataError(f"{files[0]}: must hold an image, got none; pack the shard again")
    places = {name: Place(True, word, name) for name, word in found}
    layout = Layout(places, train.classes, split=True)
    contents = ((name, read) for file in files for name, read, _ in entries(file))
    decode_images(folder, files[0].parent, contents, layout, options)
    save_array(folder, "labels", np.array([numbers[word] for _, word in found], np.int64))


def _require_different(names: list[str]) -> None:
    """Raise for a name that two test images have, which stand in one table by their names."""
    known: set[str] = set()
    for name in names:
        if name in known:
            raise DataError(
                f"{name} must be the name of one test image, got it twice; name each shard once, "
                "or pack it again"
            )
        known.add(name)
