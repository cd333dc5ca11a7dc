"""The images that a split knows, where others lie beside them."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from unitmargin.data.kept import Kept
from unitmargin.data.layout import Layout
from unitmargin.data.split import Split, find_split

Entries = Iterable[tuple[str, Callable[[], bytes]]]
"""Names of images, and what reads each before the next is asked for."""

Contents = set[tuple[str, str]]
"""Classes and SHA-256 of images."""


def known_images(layout: Layout, entries: Entries, split: Split, path: Path) -> Layout:
    """A layout without the images that a split does not know by class and content.

    They are read and not decoded, so they may be of any size, in colour, or no images.

    Raises:
        DataError: an image of the split that is not there; ``path`` is named.
    """
    contents = {
        name: hashlib.sha256(read()).hexdigest() for name, read in entries if name in layout.places
    }
    found = [(layout.places[name].label, digest) for name, digest in contents.items()]
    find_split(split, [label for label, _ in found], [digest for _, digest in found], path)
    wanted = _contents(split)
    places = {
        name: place
        for name, place in layout.places.items()
        if (place.label, contents.get(name)) in wanted
    }
    classes = tuple(label for label in layout.classes if label in split.classes)
    return layout._replace(places=places, classes=classes)


def keeps_others(kept: Kept, split: Split) -> bool:
    """Whether decoded images are also of some that a split does not know."""
    classes = kept.arrays["classes"]
    labels = map(str, classes[kept.arrays["rank"]])
    digests = (digest.tobytes().hex() for digest in kept.arrays["sha256"])
    return not _contents(split).issuperset(zip(labels, digests, strict=True))


def _contents(split: Split) -> Contents:
    return {(image.label, image.sha256) for image in (*split.train, *split.test)}
