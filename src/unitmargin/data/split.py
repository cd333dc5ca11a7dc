"""Train and test samples of data that come without: drawn once, and then what they are."""

import hashlib
from collections.abc import Sequence
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
    """Which samples are test samples: of each class that share, rounded, at least one on each side.

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
    own: dict[str, set[str]] = {}
    for label, content in zip(labels, contents, strict=True):
        own.setdefault(label, set()).add(content)
    tested = set()
    for label, different in own.items():
        if len(different) < 2:
            raise DataError(
                f"{path}: every class must hold two different images at least, one to train and "
                f"one to test, got one in {label}; add images, or remove the class"
            )
        drawn = sorted(different, key=lambda content: _drawn(content, seed))
        count = min(max(1, round(share * len(drawn))), len(drawn) - 1)
        tested |= {(label, content) for content in drawn[:count]}
    return np.array([sample in tested for sample in zip(labels, contents, strict=True)])


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


def _drawn(content: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed} {content}".encode()).digest()
