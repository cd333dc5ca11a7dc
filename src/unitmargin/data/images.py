"""Folders and archives of images, with one folder for each class."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from unitmargin.data.arrays import SPLITS, Arrays, dataset_of_arrays, npz, write_arrays
from unitmargin.data.cache import cache_folder
from unitmargin.data.files import DataError, Member, fingerprint, members
from unitmargin.data.samples import Dataset

CACHE_VERSION = 1
"""Part of the name of a cached file: raise it when the same images give other arrays."""

LAYOUT = "train/CLASS/image and test/CLASS/image"

Pixels = UInt8[np.ndarray, "height width *channels"]


def images(path: Path, cache: Path | None = None, name: str = "images") -> Dataset:
    """Images that lie as ``train/CLASS/image`` and ``test/CLASS/image``.

    ``path`` is a folder or a tar archive (plain, gzip, bzip2 or xz), with or without one folder
    around ``train`` and ``test``. Classes are sorted by name, samples by class and file name. Files
    and folders whose name begins with a dot are left out.

    The images are decoded once; the arrays are kept in the cache folder (see :func:`cache_folder`),
    and are made again when the data changes or the kept file is damaged. Nothing is extracted.

    Shapes: inputs are uint8 ``(n, channels, height, width)`` with scale 255; one channel if every
    image is 8-bit grey, else three.

    Raises:
        DataError: what is no image, an image of another size, an empty class, classes that differ
            between train and test, a missing split, a file in the wrong place, or a damaged
            archive; the message names the file.

    Example:
        >>> images(Path("flowers.tar.xz")).classes  # doctest: +SKIP
        ('rose', 'tulip')
    """
    kept = cache_folder(cache) / f"images-{CACHE_VERSION}-{fingerprint(path)}.npz"
    if kept.is_file():
        try:
            return npz(kept, name)
        except DataError:
            kept.unlink(missing_ok=True)
    arrays = _arrays(path)
    dataset = dataset_of_arrays(arrays, name, path)
    write_arrays(kept, arrays)
    return dataset


@dataclass(frozen=True)
class _Place:
    top: str
    split: str
    label: str
    file: str


@dataclass(frozen=True)
class _Tree:
    pixels: dict[_Place, Pixels] = field(default_factory=dict)
    folders: set[_Place] = field(default_factory=set)


def _arrays(path: Path) -> Arrays:
    tree = _decoded(path)
    classes = _classes(path, tree)
    grey = all(image.ndim == 2 for image in tree.pixels.values())
    arrays: Arrays = {"classes": np.array(classes)}
    for split in SPLITS:
        places = [place for place in tree.pixels if place.split == split]
        places.sort(key=lambda place: (place.label, place.file))
        arrays[f"x_{split}"] = np.stack([_planes(tree.pixels[place], grey) for place in places])
        arrays[f"y_{split}"] = np.array([classes.index(place.label) for place in places])
    return arrays


def _decoded(path: Path) -> _Tree:
    from unitmargin.data.pixels import pixels

    tree = _Tree()
    size: tuple[int, ...] = ()
    for member in members(path, progress=f"decoding {path.name}"):
        place = _place(path, member)
        if place is None:
            continue
        tree.folders.add(_Place(place.top, place.split, place.label, ""))
        if member.is_folder:
            continue
        name = f"{path}: {member.name}"
        image = pixels(member.read(), name)
        size = size or image.shape[:2]
        if image.shape[:2] != size:
            raise DataError(
                f"{name}: must have the size of the images before it, {_size(size)}, got "
                f"{_size(image.shape)} (height x width); resize the images to one size"
            )
        tree.pixels[place] = image
    return tree


def _place(path: Path, member: Member) -> _Place | None:
    """Where in the layout a member lies; None for what the layout does not speak of."""
    parts = member.name.split("/")
    if any(part.startswith(".") for part in parts):
        return None
    top = "" if parts[0] in SPLITS else parts.pop(0)
    if not parts or parts[0] not in SPLITS or (member.is_folder and len(parts) == 1):
        return None
    if len(parts) != (2 if member.is_folder else 3):
        raise DataError(f"{path}: files must lie as {LAYOUT}, got {member.name}; move or remove it")
    return _Place(top, parts[0], parts[1], "" if member.is_folder else parts[2])


def _classes(path: Path, tree: _Tree) -> list[str]:
    tops = sorted({place.top for place in tree.folders})
    if len(tops) > 1:
        raise DataError(
            f"{path}: train and test must lie side by side, got both under {tops[0] or '.'} and "
            f"{tops[1]}; keep one data set in a folder or archive"
        )
    classes = {split: {p.label for p in tree.folders if p.split == split} for split in SPLITS}
    for split in SPLITS:
        if not classes[split]:
            raise DataError(
                f"{path}: must hold images as {LAYOUT}, got no class in {split}; add the folder"
            )
    odd = sorted(classes["train"] ^ classes["test"])
    if odd:
        split = "test" if odd[0] in classes["train"] else "train"
        raise DataError(
            f"{path}: train and test must have the same classes, got no {split}/{odd[0]}; add it"
        )
    counts = Counter((place.split, place.label) for place in tree.pixels)
    for folder in sorted((p.split, p.label) for p in tree.folders):
        if not counts[folder]:
            raise DataError(
                f"{path}: every class must hold an image, got none in {'/'.join(folder)}; "
                "add images or remove the class from both splits"
            )
    return sorted(classes["train"])


def _planes(image: Pixels, grey: bool) -> UInt8[np.ndarray, "channels height width"]:
    if grey:
        return image[None]
    coloured = image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
    return coloured.transpose(2, 0, 1)


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} x {shape[1]}"
