"""Where images lie: in a folder for each class, below folders of splits or not."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from unitmargin.data.files import DataError, members

TRAIN = "train"

HELD_OUT = ("test", "val", "valid", "validation")
"""Names of the folder of test samples; the first one that holds classes is used."""

LAYOUT = "train/CLASS/IMAGE and test/CLASS/IMAGE (or val), or CLASS/IMAGE without a split"

IMAGE_SUFFIXES = {
    ".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp",
}  # fmt: skip
"""Names of a file that is one image, not an archive."""

Parts = tuple[str, ...]


class Place(NamedTuple):
    """Of an image: whether it is of the test, its class, and its name in the folder of the class.

    Of a data set without a split none is of the test.
    """

    test: bool
    label: str
    file: str


class Layout(NamedTuple):
    """The images of a data set by their names, in the order of its samples; its classes in the
    order of their numbers, and whether it comes split."""

    places: dict[str, Place]
    classes: tuple[str, ...]
    split: bool


def read_layout(path: Path, drawn: Collection[str] | None = None) -> Layout:
    """Where the images under ``path`` lie; no image is read.

    Without a split, only those of ``drawn`` have to hold an image, the classes of a split that was
    drawn; default: all.

    Raises:
        DataError: images that are nested more deeply or lie in no folder of a class, a class that
            is empty or missing in one of the splits, or no class at all.
    """
    files, folders = _tree(path)
    inner = {folder[:-1] for folder in folders}
    homes = {name: _homes(name, folders & inner) for name in (TRAIN, *HELD_OUT)}
    held_out = next((name for name in HELD_OUT if homes[name]), "")
    if not homes[TRAIN] and not held_out:
        return _unsplit(path, files, folders, drawn)
    tops = sorted({*homes[TRAIN], *(homes[held_out] if held_out else ())})
    if len(tops) > 1:
        raise DataError(
            f"{path}: train and test must lie side by side, got both under "
            f"{'/'.join(tops[0]) or '.'} and {'/'.join(tops[1])}; keep one data set in a folder or "
            "archive"
        )
    if not homes[TRAIN] or not held_out:
        step = f"add the folder, or name {TRAIN} itself to have its images split"
        raise DataError(
            f"{path}: must hold images as {LAYOUT}, got no class in "
            f"{'test' if homes[TRAIN] else TRAIN}; {step if homes[TRAIN] else 'add the folder'}"
        )
    places: dict[str, Place] = {}
    labels = []
    for split in (TRAIN, held_out):
        root = (*tops[0], split)
        labels.append(_labels(root, folders))
        places |= _places(path, root, files, folders, test=split != TRAIN)
    for label in sorted(labels[0] ^ labels[1]):
        odd = held_out if label in labels[0] else TRAIN
        raise DataError(
            f"{path}: {TRAIN} and {held_out} must have the same classes, got no {odd}/{label}; "
            "add it"
        )
    for test, split in ((True, held_out), (False, TRAIN)):
        filled = {place.label for place in places.values() if place.test == test}
        _require_filled(path, labels[0] - filled, f"{split}/", " from both splits")
    return Layout(_in_order(places), tuple(sorted(labels[0])), split=True)


def _tree(path: Path) -> tuple[list[Parts], set[Parts]]:
    files: dict[Parts, None] = {}
    folders: set[Parts] = set()
    for member in members(path):
        parts = tuple(member.name.split("/"))
        folders |= {parts[:length] for length in range(1, len(parts) + member.is_folder)}
        if not member.is_folder:
            files[parts] = None
    return list(files), folders


def _homes(name: str, folders: set[Parts]) -> set[Parts]:
    """Folders around one of that name, which itself is no deeper than the second level."""
    return {folder[:-1] for folder in folders if folder[-1] == name and len(folder) <= 2}


def _unsplit(
    path: Path, files: list[Parts], folders: set[Parts], drawn: Collection[str] | None
) -> Layout:
    tops = [folder for folder in folders if len(folder) == 1]
    around = len(tops) == 1 and any(len(folder) == 2 for folder in folders)
    root = tops[0] if around else ()
    labels = _labels(root, folders)
    if not labels or labels <= {TRAIN, *HELD_OUT}:
        got = f"images in {' and '.join(sorted(labels))} alone" if labels else "no folder"
        raise DataError(
            f"{path}: must hold images as {LAYOUT}, got {got}; put the images of each class in a "
            "folder with its name"
        )
    places = _places(path, root, files, folders, test=False)
    filled = {place.label for place in places.values()}
    needed = labels if drawn is None else labels & {*drawn}
    _require_filled(path, needed - filled, "", "")
    return Layout(_in_order(places), tuple(sorted(labels)), split=False)


def _in_order(places: dict[str, Place]) -> dict[str, Place]:
    """Images in the order of split, class and file name."""
    return dict(sorted(places.items(), key=lambda named: named[1]))


def _labels(root: Parts, folders: set[Parts]) -> set[str]:
    labels = {folder[-1] for folder in folders if folder[:-1] == root}
    for label in labels:
        try:
            label.encode()
        except UnicodeEncodeError:
            raise DataError(
                f"the folder of a class must have a name in UTF-8, got {label!a}; rename it"
            ) from None
    return labels


def _places(
    path: Path, root: Parts, files: list[Parts], folders: set[Parts], test: bool
) -> dict[str, Place]:
    """The images below a folder of classes; what lies elsewhere and is no image is left out."""
    for parts in _misplaced(root, files, folders):
        raise DataError(
            f"{path}: files must lie as {LAYOUT}, got {'/'.join(parts)}; move or remove it"
        )
    return {
        "/".join(parts): Place(test, parts[-2], parts[-1])
        for parts in files
        if parts[:-2] == root and len(parts) == len(root) + 2
    }


def _misplaced(root: Parts, files: list[Parts], folders: set[Parts]) -> Iterator[Parts]:
    depth = len(root)
    for parts in sorted(folders):
        if parts[:depth] == root and len(parts) > depth + 1:
            yield parts
    for parts in sorted(files):
        stray = parts[:-1] == root
        if stray and ((depth and root[-1] in (TRAIN, *HELD_OUT)) or _is_image(parts[-1])):
            yield parts


def _is_image(name: str) -> bool:
    return Path(name).suffix.lower() in IMAGE_SUFFIXES


def _require_filled(path: Path, empty: set[str], before: str, where: str) -> None:
    for label in sorted(empty):
        raise DataError(
            f"{path}: every class must hold an image, got none in {before}{label}; add images or "
            f"remove the class{where}"
        )
