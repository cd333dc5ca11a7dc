"""Images on their way from files into a folder of the cache, each at its place of a layout."""

import hashlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from unitmargin.data.decoding import decode
from unitmargin.data.files import DataError
from unitmargin.data.image_options import ImageOptions
from unitmargin.data.image_writer import ImageWriter
from unitmargin.data.kept import changed_data
from unitmargin.data.known import Entries
from unitmargin.data.layout import Layout


class MixedSizesError(DataError):
    """Images of several sizes where they have to have one."""


def decode_images(
    folder: Path,
    path: Path,
    entries: Entries,
    layout: Layout,
    options: ImageOptions,
) -> None:
    """Write images into a folder of the cache, at the places of a layout.

    Raises:
        DataError: an image that cannot be decoded, or a place without one.
    """
    under_way: deque[tuple[str, int, bytes]] = deque()
    with ImageWriter(folder, len(layout.places)) as writer:
        contents = _contents(path, entries, layout, writer, under_way)
        for image in decode(contents, options.resize, options.channels):
            name, place, digest = under_way.popleft()
            _require_size(f"{path}: {name}", image.shape, writer.size)
            writer.put(place, digest, image)
    written = writer.done.any(axis=1)
    if not written.all():
        lost = [*layout.places][int(written.argmin())]
        raise changed_data(path, f"{lost} no more")


def _contents(
    path: Path,
    entries: Entries,
    layout: Layout,
    writer: ImageWriter,
    under_way: deque[tuple[str, int, bytes]],
) -> Iterator[tuple[str, bytes]]:
    """The images as they are encoded that are not decoded yet; what they are is noted as they
    pass."""
    places = {name: place for place, name in enumerate(layout.places)}
    for name, read in entries:
        if name in places:
            content = read()
            digest = hashlib.sha256(content).digest()
            if not writer.has(places[name], digest):
                writer.forget(places[name])
                under_way.append((name, places[name], digest))
                yield f"{path}: {name}", content


def _require_size(name: str, shape: tuple[int, ...], size: tuple[int, ...] | None) -> None:
    if size is not None and shape[:2] != size:
        before, got = (f"{height} x {width}" for height, width in (size, shape[:2]))
        raise MixedSizesError(
            f"{name}: must have the size of the images before it, {before}, got {got} (height x "
            "width); resize them: in the recipe's [data], resize = 64 makes all 64 x 64"
        )
