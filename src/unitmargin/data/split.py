"""Train and test samples of data that come without: drawn once, and then what they are."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Bool

from unitmargin.data.files import DataError
from unitmargin.foundation.options import Options


class SplitImage(Options):
    """An image of a split: its class, its name in the folder of the class, and its content."""

    label: str
    file: str
    sha256: str


class Split(Options):
    """Which images are train and which are test samples, in the order of the samples."""

    format: Literal["unitmargin-split-1"] = "unitmargin-split-1"
    classes: list[str]
    train: list[SplitImage]
    test: list[SplitImage]


def draw_split(
    labels: Sequence[str], contents: Sequence[str], share: float, seed: int, path: Path
) -> Bool[np.ndarray, " n"]:
    """Which samples are test samples: those of each class that :func:`held_out` names.

    Guarantee: it depends on the seed and, class by class, on the contents alone, in any order;
    samples of one class with one content are on one side.

    Args:
        labels: the class of each sample.
        contents: a hash of each.
        path: is named in errors.

    Raises:
        DataError: a class with fewer than two different samples.

    Example:
        >>> draw_split(["a", "a"], ["1", "2"], 0.2, 0, Path("photos")).sum()
        np.int64(1)
    """
    own: dict[str, dict[bytes, list[int]]] = {}
    for place, (label, content) in enumerate(zip(labels, contents, strict=True)):
        key = hashlib.sha256(f"{seed} {content}".encode()).digest()
        own.setdefault(label, {}).setdefault(key, []).append(place)
    is_test = np.zeros(len(labels), bool)
    for label, copies in own.items():
        if len(copies) < 2:
            raise DataError(
                f"{path}: every class must hold two different images at least, one to train and "
                f"one to test, got one in {label}; add images, or remove the class"
            )
        is_test[held_out(copies, share)] = True
    return is_test


def held_out(copies: Mapping[bytes, Sequence[int]], share: float) -> list[int]:
    """The places of a class that are kept for the test, as near to that share of them as may be.

    They are those with the lowest keys, at least one key is on each side, and what has one key,
    which are copies of one sample, is never parted.

    Example:
        >>> held_out({b"b": [0], b"a": [1, 3], b"c": [2]}, 0.5)
        [1, 3]
    """
    ordered = [copies[key] for key in sorted(copies)]
    sizes = np.cumsum([len(places) for places in ordered])
    count = 1 + int(np.abs(sizes[:-1] - share * sizes[-1]).argmin())
    return [place for places in ordered[:count] for place in places]


def find_split(
    split: Split, labels: Sequence[str], contents: Sequence[str], path: Path
) -> tuple[list[int], list[int]]:
    """The places of the train and the test samples of a split that was drawn earlier.

    Samples that it does not know are left out.

    Raises:
        DataError: a sample that is not there any more.
    """
    known = zip(labels, contents, strict=True)
    places = {sample: place for place, sample in reversed(list(enumerate(known)))}
    found: tuple[list[int], list[int]] = ([], [])
    for side, images in zip(found, (split.train, split.test), strict=True):
        for image in images:
            if (image.label, image.sha256) not in places:
                raise DataError(
                    f"{path}: must hold every image of the run's split, got no "
                    f"{image.label}/{image.file} with the content that it had; put it back, or "
                    "train in another folder"
                )
            side.append(places[image.label, image.sha256])
    return found
