"""Training images in tar files that are streamed: more than a disk holds when they are decoded."""

import hashlib
import json
import random
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from unitmargin.data.decoding import decode
from unitmargin.data.files import DataError, explained
from unitmargin.data.image_options import ImageOptions
from unitmargin.data.image_writer import planes
from unitmargin.data.kept import changed_data, keep_arrays, save_array, unchanged
from unitmargin.data.layout import IMAGE_SUFFIXES
from unitmargin.data.remembered import remembered, source_memory
from unitmargin.data.samples import BYTES, UNIT
from unitmargin.data.shard_entries import LABEL, class_word, entries, sample_part
from unitmargin.foundation.cells import class_order
from unitmargin.foundation.files import file_sha256
from unitmargin.foundation.numbers import shown

CACHE_VERSION = 2
"""Part of the name of a kept index: raise it when the same files give another one."""

BUFFER = 1000
"""Encoded images among which the next one is drawn: shards are drawn whole, so neighbours would
follow each other."""

Sample = tuple[str, bytes, int]


@dataclass(frozen=True, eq=False)
class TarShards:
    """Training images in tar files, each an image and a ``cls`` file of one name.

    An epoch has as many steps as all samples have, and in each step every process takes its share
    from the shards that it reads: shards are drawn by seed and epoch, the processes take them in
    turns, and who is through with its own goes on with the next draw. So no process runs out of
    samples while others wait for it. In an epoch, every sample is seen once where shards have one
    length and their number is a multiple of that of the processes; otherwise a process with longer
    shards leaves some out, and one with shorter shards sees some of another draw.

    Attributes:
        files: the shards.
        labels: class numbers of all samples, in the order of the files.
        in_shape: channels, height and width of an image.
        sha256: of the content of all shards and how images are made.
        options: how images are made.
    """

    files: tuple[Path, ...]
    labels: Int64[Tensor, " n"]
    classes: tuple[str, ...]
    in_shape: tuple[int, ...]
    sha256: str
    options: ImageOptions
    domain: tuple[float, float] = UNIT
    scale: float = BYTES

    def __len__(self) -> int:
        return len(self.labels)

    def near(self, device: torch.device | str) -> "TarShards":
        """The same shards, which are on no device."""
        return self

    def samples(self, seed: int, epoch: int, rank: int, processes: int) -> Iterator[Sample]:
        """What one process reads in an epoch, without an end: name, encoded image and class.

        Samples are mixed within a draw, so that all of one come before those of the next.

        Raises:
            DataError: every shard was read since the last sample, so none will come.
        """
        mixed, turns = random.Random(f"{seed} {epoch} {rank}"), count()
        barren: set[Path] = set()
        for draw in count():
            order = np.random.default_rng([seed, epoch, draw]).permutation(len(self.files))
            own = [self.files[place] for place in order if next(turns) % processes == rank]
            barren |= {*own}
            for sample in self._read(iter(own), BUFFER, mixed):
                barren.clear()
                yield sample
            if len(barren) == len({*self.files}):
                raise DataError(
                    f"{self.files[0]}: shards must hold the {len(self)} samples that they had when "
                    "they were counted, got none; put them back and start again"
                )

    def images(
        self, samples: Iterator[Sample], processes: int
    ) -> Generator[tuple[Tensor, int], None, None]:
        """Samples decoded, in their order: bytes ``(channels, height, width)``, and the class."""
        under_way: deque[tuple[str, int]] = deque()

        def contents() -> Iterator[tuple[str, bytes]]:
            for name, content, label in samples:
                under_way.append((name, label))
                yield name, content

        options = self.options
        for image in decode(contents(), options.resize, options.channels, processes):
            name, label = under_way.popleft()
            self._require_shape(name, image.shape)
            yield torch.from_numpy(np.array(planes(image, self.in_shape[0]))), label

    def every_image(self) -> Iterator[Tensor]:
        """All images once, in the order of the files, in [0, 1]."""
        samples = self._read(iter(self.files), 1, random.Random(0))
        for image, _ in self.images(samples, 1):
            yield image[None].to(torch.float32) / torch.tensor(self.scale)

    def _read(self, files: Iterator[Path], buffer: int, mixed: random.Random) -> Iterator[Sample]:
        from webdataset.filters import shuffle

        numbers = {label: number for number, label in enumerate(self.classes)}
        with closing(_grouped(files)) as grouped:
            for sample in shuffle(buffer, initial=buffer, rng=mixed)(grouped):
                suffixes = [name for name in sample if f".{name}" in IMAGE_SUFFIXES]
                name = f"{sample['__url__']}: {sample['__key__']}"
                if suffixes:
                    label = class_word(sample.get(LABEL), name)
                    if label not in numbers:
                        raise changed_data(Path(sample["__url__"]), f"the class {shown(label)}")
                    yield f"{name}.{suffixes[0]}", sample[suffixes[0]], numbers[label]

    def _require_shape(self, name: str, shape: tuple[int, ...]) -> None:
        channels = 1 if len(shape) == 2 else 3
        if shape[:2] != self.in_shape[1:] or channels > self.in_shape[0]:
            first, got = (
                " x ".join(map(str, size)) for size in (self.in_shape, (channels, *shape[:2]))
            )
            raise DataError(
                f"{name}: must be an image of {first} (channels x height x width), as the first "
                f"one of the shards is, got {got}; in the recipe's [data], resize = 64 makes all "
                "64 x 64, and channels = 3 all coloured"
            )


def _grouped(files: Iterator[Path]) -> Generator[dict[str, Any], None, None]:
    """Samples as webdataset groups them, which itself would open an address or start a command."""
    from webdataset.tariterators import group_by_keys, tar_file_expander

    for file in files:
        with explained(file), file.open("rb") as stream:
            members = tar_file_expander([{"url": str(file), "stream": stream}])
            yield from group_by_keys(members, keys=partial(sample_part, file))


def expand_shards(pattern: str) -> tuple[Path, ...]:
    """The files that a pattern such as ``train-{0000..0146}.tar`` names.

    Raises:
        ImportError: webdataset is missing.
        DataError: a file is missing.

    Example:
        >>> expand_shards("train-{0000..0146}.tar")  # doctest: +SKIP
        (PosixPath('train-0000.tar'), ...)
    """
    try:
        from braceexpand import braceexpand
    except ImportError:
        raise ImportError(
            "webdataset must be installed to read shards, got none; run "
            "`pip install unitmargin[shards]`"
        ) from None
    files = tuple(Path(name).expanduser() for name in braceexpand(pattern, escape=False))
    for file in files:
        if not file.is_file():
            raise DataError(f"{file}: must be a tar file of {pattern}, found none; check the path")
    return files


def open_shards(pattern: str, options: ImageOptions, cache: Path | None = None) -> TarShards:
    """The training images in the tar files of a pattern; see :class:`TarShards`.

    Cost: every file is read once, for its hash and its labels, which the cache folder keeps.

    Raises:
        ImportError: webdataset is missing.
        DataError: a file that is missing or damaged, an image without a class, or no image.
    """
    files = expand_shards(pattern)
    fingerprint = partial(_fingerprint, files, options, cache)
    sha256 = fingerprint()
    make = unchanged(Path(pattern), sha256, fingerprint, partial(_make_index, files, options))
    index = keep_arrays(cache, f"shards-{CACHE_VERSION}-{sha256}", make).arrays
    return TarShards(
        files=files,
        labels=torch.from_numpy(np.array(index["labels"], np.int64)),
        classes=tuple(map(str, index["classes"])),
        in_shape=tuple(map(int, index["in_shape"])),
        sha256=sha256,
        options=options,
    )


def _fingerprint(files: tuple[Path, ...], options: ImageOptions, cache: Path | None) -> str:
    """SHA-256 of the content of all shards and how images are made."""
    hashes = [remembered_sha256(file, cache) for file in files]
    return hashlib.sha256(json.dumps([hashes, options.images()]).encode()).hexdigest()


def remembered_sha256(file: Path, cache: Path | None) -> str:
    """The hash of a file, not computed again while it has not changed."""
    memory = source_memory(cache, f"{file.resolve()}\0file")
    with explained(file):
        return remembered(memory, [("", file)], lambda: file_sha256(file))


def _make_index(files: tuple[Path, ...], options: ImageOptions, folder: Path) -> None:
    words: list[str] = []
    shape: tuple[int, ...] = ()
    for file in files:
        for name, read, label in entries(file):
            words.append(label)
            if not shape:
                (image,) = decode([(name, read())], options.resize, options.channels, 1)
                shape = (1 if image.ndim == 2 else 3, *image.shape[:2])
    if not words:
        raise DataError(f"{files[0]}: must hold an image and its .{LABEL}, got none; pack it again")
    classes = class_order(words)
    place = {word: number for number, word in enumerate(classes)}
    save_array(folder, "labels", np.array([place[word] for word in words], np.int64))
    save_array(folder, "classes", np.array(classes))
    save_array(folder, "in_shape", np.array(shape, np.int64))
