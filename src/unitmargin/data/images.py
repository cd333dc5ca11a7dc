"""Folders and archives of images, with one folder for each class."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from unitmargin.data.arrays import SPLITS, Arrays, dataset_of_arrays, npz, write_arrays
from unitmargin.data.cache import cache_folder
from unitmargin.data.files import DataError, Member, fingerprint, members
from unitmargin.data.samples import Dataset

CACHE_VERSION = 2
"""Part of the name of a cached file: raise it when the same images give other arrays."""

LAYOUT = "train/CLASS/image and test/CLASS/image"

Pixels = UInt8[np.ndarray, "height width *channels"]


def images(path: Path, cache: Path | None = None, name: str = "images") -> Dataset:
    """Images that lie as ``train/CLASS/image`` and ``test/CLASS/image``.

    ``path`` is a folder or a tar archive (plain, gzip, bzip2 or xz), with or without one folder
    around ``train`` and ``test``; one tree gives one data set, as a folder and as an archive.
    Classes are sorted by name, samples by class and file name. Files and folders whose name begins
    with a dot are left out. Hard links are files; symbolic ones are refused.

    The images are decoded once; the arrays are kept in the cache folder (see :func:`cache_folder`),
    and are made again when the data changes or the kept file is damaged. Nothing is extracted.

    Shapes: inputs are uint8 ``(n, channels, height, width)`` with scale 255; one channel if every
    image is 8-bit grey, else three.

    Raises:
        DataError: what is no image or would be cut as one, an image of another size, an empty
            class, classes that differ between train and test, a missing split, a file in the wrong
            place, a symbolic link, or a damaged archive; the message names the file.

    Example:
        >>> images(Path("flowers.tar.xz")).classes  # doctest: +SKIP
        ('rose', 'tulip')
    """
    kept = cache_folder(cache) / f"images-{CACHE_VERSION}-{fingerprint(path)}.npz"
    try:
        return npz(kept, name)
    except DataError:
        kept.unlink(missing_ok=True)
    arrays = _arrays(path)
    dataset = dataset_of_arrays(arrays, name, path)
    write_arrays(kept, arrays)
    return dataset


class _Folder(NamedTuple):
    """The folder of a class; ``top`` is the one around the splits, if any."""

    top: str
    split: str
    label: str


Tree = dict[_Folder, dict[str, Pixels]]
"""Images by folder and file name."""


def _arrays(path: Path) -> Arrays:
    tree = _decoded(path)
    classes = _classes(path, tree)
    grey = all(image.ndim == 2 for folder in tree.values() for image in folder.values())
    arrays: Arrays = {"classes": np.array(classes)}
    for split in SPLITS:
        folders = [tree[folder] for folder in sorted(tree) if folder.split == split]
        planes = [_planes(folder[file], grey) for folder in folders for file in sorted(folder)]
        arrays[f"x_{split}"] = np.stack(planes)
        arrays[f"y_{split}"] = np.repeat(np.arange(len(classes)), [*map(len, folders)])
    return arrays


def _decoded(path: Path) -> Tree:
    from unitmargin.data.pixels import pixels

    tree: Tree = {}
    size: tuple[int, ...] = ()
    for member in members(path, progress=f"decoding {path.name}"):
        folder = _folder(path, member)
        if folder is None:
            continue
        own = tree.setdefault(folder, {})
        if member.is_folder:
            continue
        name = f"{path}: {member.name}"
        image = own[member.name.rpartition("/")[2]] = pixels(member.read(), name)
        size = size or image.shape[:2]
        if image.shape[:2] != size:
            raise DataError(
                f"{name}: must have the size of the images before it, {size[0]} x {size[1]}, got "
                f"{len(image)} x {image.shape[1]} (height x width); resize the images to one size"
            )
    return tree


def _folder(path: Path, member: Member) -> _Folder | None:
    """The class that a member is or lies in; None for what the layout does not speak of."""
    parts = member.name.split("/")
    top = "" if parts[0] in SPLITS else parts.pop(0)
    if not parts or parts[0] not in SPLITS or (member.is_folder and len(parts) == 1):
        return None
    if len(parts) != (2 if member.is_folder else 3):
        raise DataError(f"{path}: files must lie as {LAYOUT}, got {member.name}; move or remove it")
    return _Folder(top, parts[0], parts[1])


def _classes(path: Path, tree: Tree) -> list[str]:
    tops = sorted({folder.top for folder in tree})
    if len(tops) > 1:
        raise DataError(
            f"{path}: train and test must lie side by side, got both under {tops[0] or '.'} and "
            f"{tops[1]}; keep one data set in a folder or archive"
        )
    classes = {split: {f.label for f in tree if f.split == split} for split in SPLITS}
    for split in SPLITS:
        if not classes[split]:
            raise DataError(
                f"{path}: must hold images as {LAYOUT}, got no class in {split}; add the folder"
            )
    if odd := sorted(classes["train"] ^ classes["test"]):
        split = "test" if odd[0] in classes["train"] else "train"
        raise DataError(
            f"{path}: train and test must have the same classes, got no {split}/{odd[0]}; add it"
        )
    for _, split, label in sorted(folder for folder, own in tree.items() if not own):
        raise DataError(
            f"{path}: every class must hold an image, got none in {split}/{label}; "
            "add images or remove the class from both splits"
        )
    return sorted(classes["train"])


def _planes(image: Pixels, grey: bool) -> UInt8[np.ndarray, "channels height width"]:
    if grey:
        return image[None]
    coloured = image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
    return coloured.transpose(2, 0, 1)
