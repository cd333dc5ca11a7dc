"""New inputs from images: a folder or archive of them, flat or with one folder a class."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from unitmargin.data.decoding import Planes
from unitmargin.data.files import DataError, Member, members
from unitmargin.data.layout import IMAGE_SUFFIXES
from unitmargin.data.parquet import image_shards, read_image_rows
from unitmargin.data.stream_items import UNKNOWN, Item, Wanted, scaled

LAYOUT = "IMAGE or CLASS/IMAGE"


def read_images(path: Path, wanted: Wanted) -> Iterator[Item]:
    """Every image under ``path``, decoded when it is asked for; labels are names of folders.

    An archive may have one folder around all. Of images whose folder has no class's name the label
    is unknown. Images are resized as those of the training were. Grey images serve networks of
    colours; colour is made grey only if it was in the training.

    Raises:
        DataError: what :func:`members` and :func:`pixels` refuse, images of another size, colour
            for a network of grey images, other layouts, and networks that take no images.
    """
    _require_image_network(path, wanted)
    labels = wanted.by_name()
    if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file():
        yield Item(scaled(_planes(path.read_bytes(), str(path), wanted)), UNKNOWN, path.name)
        return
    top = ""
    for member in members(path, progress=f"reading {path.name}"):
        folders = member.name.split("/")[:-1]
        top = top or (folders[0] if folders else "")
        _require_layout(path, member, top)
        if not member.is_folder:
            name = f"{path}: {member.name}"
            planes = _planes(member.read(), name, wanted)
            label = labels.get(folders[-1], UNKNOWN) if folders else UNKNOWN
            yield Item(scaled(planes), label, _printable(member.name))


def read_image_shards(path: Path, wanted: Wanted) -> Iterator[Item]:
    """Every row of Parquet files of images, as :func:`read_images` has those of a folder.

    Raises:
        DataError: what :func:`read_image_rows` and :func:`pixels` refuse, images of another size or
            colour, and networks that take no images.
    """
    _require_image_network(path, wanted)
    labels = wanted.by_name()
    for shard in image_shards(path):
        rows = read_image_rows(path, shard, wanted.images.label)
        for number, (content, word) in enumerate(rows):
            source = shard.row(number)
            planes = _planes(content, f"{path}: {source}", wanted)
            yield Item(scaled(planes), labels.get(word or "", UNKNOWN), _printable(source))


def _require_image_network(path: Path, wanted: Wanted) -> None:
    if len(wanted.in_shape) != 3 or wanted.in_shape[0] not in (1, 3):
        raise DataError(
            f"{path}: images must have one channel or three, got a network with inputs of shape "
            f"{wanted.in_shape}; pass them as .npz, .npy or .csv"
        )


def _require_layout(path: Path, member: Member, top: str) -> None:
    """Refuse what lies deeper than a class; only an archive has a folder around."""
    depth = member.name.count("/") + member.is_folder
    around = not path.is_dir() and member.name.startswith(f"{top}/")
    if depth > 1 + around:
        raise DataError(
            f"{path}: images must lie as {LAYOUT}, got {member.name}; name the folder that holds "
            "the images, or those of the classes"
        )


def _planes(content: bytes, name: str, wanted: Wanted) -> Planes:
    from unitmargin.data.pixels import pixels

    channels, height, width = wanted.in_shape
    resize = wanted.images.resize
    image = pixels(content, name, resize, wanted.images.channels)
    if resize is not None and height > resize:  # of a network that was trained on repeated pixels
        image = image.repeat(height // resize, 0).repeat(width // resize, 1)
    if image.shape[:2] != (height, width):
        raise DataError(
            f"{name}: must have the size of the network's inputs, {height} x {width}, got "
            f"{len(image)} x {image.shape[1]} (height x width); resize the "
            "images, or name the run or the model file if it was trained with resize"
        )
    if image.ndim == 3 and channels == 1:
        raise DataError(
            f"{name}: must be an 8-bit grey image, as the network's inputs are, got colours; "
            "convert it"
        )
    planes = image[None] if image.ndim == 2 else image.transpose(2, 0, 1)
    return np.broadcast_to(planes, wanted.in_shape)


def _printable(name: str) -> str:
    """A file's name as text: bytes of it that are none are written out."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
