"""Decoded images on their way into the cache folder, which go on where they were interrupted."""

from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType

import numpy as np

from unitmargin.data.decoding import Pixels, Planes
from unitmargin.data.npy import RowWriter, map_array

BLOCK = 2**24
"""Bytes of images after which what was written is put on the disk and noted as done."""

DIGEST = 32
"""Bytes of a SHA-256."""

BYTE = np.dtype(np.uint8)


class ImageWriter:
    """Writes ``x.npy``, one image a place, and ``sha256.npy``, of the encoded image at each place.

    A place is noted as done when its image is on the disk, by the hash of what it was decoded from:
    whoever comes after an interruption finds it there (:meth:`has`). Images are grey until the
    first one with colours comes; then those before it are written anew with three channels.

    Raises:
        OSError: what the system refuses, such as a full disk.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count
        self.done = np.zeros((count, DIGEST), np.uint8)
        self.images: RowWriter | None = None
        self.noted: RowWriter | None = None
        self.pending: dict[int, bytes] = {}
        self._go_on()

    def has(self, place: int, digest: bytes) -> bool:
        """Whether that image is written at that place."""
        return bytes(self.done[place]) == digest

    def forget(self, place: int) -> None:
        """Note that what is at a place is about to be replaced, as by a later image of its name."""
        self.done[place] = 0
        self.pending.pop(place, None)
        if self.noted is not None:
            self.noted.write(place, self.done[place])

    @property
    def size(self) -> tuple[int, ...] | None:
        """Height and width of the images, None before the first one."""
        return None if self.images is None else self.images.shape[2:]

    def put(self, place: int, digest: bytes, image: Pixels) -> None:
        """Write an image of that size, which was decoded from what has that hash."""
        if self.images is None:
            self._open(1 if image.ndim == 2 else 3, image.shape[:2])
        elif image.ndim == 3 and self.images.shape[1] == 1:
            self._add_colours()
        assert self.images is not None  # opened above
        self.images.write(place, planes(image, self.images.shape[1]))
        self.pending[place] = digest
        if len(self.pending) * self.images.width >= BLOCK:
            self.note()

    def note(self) -> None:
        """Put all that was written on the disk, and note that it is."""
        if self.images is None or self.noted is None:
            return
        self.images.sync()
        for place, digest in self.pending.items():
            self.done[place] = np.frombuffer(digest, np.uint8)
            self.noted.write(place, self.done[place])
        self.pending.clear()

    def __enter__(self) -> "ImageWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            # of two faults the one that is on its way says more
            with nullcontext() if kind is None else suppress(OSError):
                self.note()
        finally:
            for writer in (self.images, self.noted):
                if writer is not None:
                    writer.stream.close()

    def _files(self) -> tuple[Path, Path]:
        return self.folder / "x.npy", self.folder / "sha256.npy"

    def _go_on(self) -> None:
        images, noted = self._files()
        try:
            shape, done = map_array(images).shape, np.load(noted, allow_pickle=False)
        except (OSError, ValueError):
            return
        if len(shape) == 4 and shape[0] == self.count and done.shape == self.done.shape:
            self.done = done
            self._open(shape[1], shape[2:])

    def _open(self, channels: int, size: tuple[int, ...]) -> None:
        images, noted = self._files()
        self.images = RowWriter(images, (self.count, channels, *size), BYTE)
        self.noted = RowWriter(noted, self.done.shape, BYTE)
        self.noted.write(0, self.done)

    def _add_colours(self) -> None:
        """Write all images again with three channels."""
        assert self.images is not None  # grey ones were written
        self.note()
        file, shape = self.images.file, (self.count, 3, *self.images.shape[2:])
        aside = file.with_suffix(".colour")
        aside.unlink(missing_ok=True)
        with RowWriter(aside, shape, BYTE) as coloured:
            grey = map_array(file)
            size = max(1, BLOCK // coloured.width)
            for start in range(0, self.count, size):
                coloured.write(start, np.repeat(grey[start : start + size], 3, axis=1))
            coloured.sync()
        self.images.stream.close()
        aside.replace(file)
        self.images = RowWriter(file, shape, BYTE)


def planes(image: Pixels, channels: int) -> Planes:
    """An image with its channels first, a grey one repeated where there are three."""
    if image.ndim == 2:
        return np.repeat(image[None], channels, axis=0)
    return image.transpose(2, 0, 1)
