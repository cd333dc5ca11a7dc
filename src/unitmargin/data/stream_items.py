"""One new input, and what it has to fit."""

from collections import Counter
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from unitmargin.data.image_options import ImageOptions
from unitmargin.data.samples import BYTES
from unitmargin.foundation.numbers import shown

UNKNOWN = -1
"""The label of an input whose class is not known."""


class Item(NamedTuple):
    """One input, its label (``UNKNOWN`` without one), and where it is found again."""

    numbers: Float32[np.ndarray, "*shape"]
    label: int
    source: str


class Wanted(NamedTuple):
    """What inputs have to fit: the shape of one, and the names of the classes.

    ``images`` says how those of the training were made of images.
    """

    in_shape: tuple[int, ...]
    classes: tuple[str, ...]
    images: ImageOptions = ImageOptions()

    def by_name(self) -> dict[str, int]:
        """The number of each class whose name is no other's."""
        counts = Counter(self.classes)
        return {name: place for place, name in enumerate(self.classes) if counts[name] == 1}

    def by_word(self) -> dict[str, int]:
        """Classes by name and by number.

        By name alone where a name is the number of another class: "1" could mean either.
        """
        names, numbers = self.by_name(), {str(n): n for n in range(len(self.classes))}
        clash = any(names.get(word, number) != number for word, number in numbers.items())
        return names if clash else numbers | names


def find_label(word: str, words: dict[str, int], where: str) -> int:
    """The class that a word stands for, ``UNKNOWN`` for an empty one.

    Raises:
        ValueError: another word.
    """
    if word and word not in words:
        raise ValueError(
            f"{where} must be a class of the model by its name or number, or empty, got "
            f"{shown(word)}; correct or empty it"
        )
    return words.get(word, UNKNOWN)


def scaled(numbers: np.ndarray) -> Float32[np.ndarray, "*shape"]:
    """Bytes divided by their scale, floating numbers rounded, in float32."""
    with np.errstate(over="ignore"):  # infinities are refused where the source is known
        held = numbers.astype(np.float32)
    return held / np.float32(BYTES) if numbers.dtype == np.uint8 else held
