"""Plans of mixing networks: one word for each layer, such as ``fold 4`` or ``window 2``."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from unitmargin.foundation.choice import choose
from unitmargin.layers.contract import Layer
from unitmargin.layers.l2_pool import L2Pool
from unitmargin.layers.rearrangement import PixelUnshuffle, Widen
from unitmargin.layers.slices import ARRANGEMENTS, Arrangement, Folds, Groups, Windows
from unitmargin.orthogonal.mixing import OrthogonalMixing
from unitmargin.orthogonal.reflection import OrthogonalReflection

SMALL = 4
"""Sides up to which a map is mixed as a whole: a group of 16 channels has 256 entries there."""

WIDEST = 256
"""Entries of a group's slices: matrices twice as wide cost twice as much, and gained nothing."""

WINDOWS = 4
"""Window layers on a large map."""

PAIRS = 4
"""Pairs of a layer of pixels and one of groups on a small map."""


class Word(NamedTuple):
    """A word of a plan: a layer's name, its numbers, and whether it reflects slices."""

    name: str
    numbers: tuple[int, ...]
    reflected: bool = False


REFLECT = "reflect"
"""In front of an arrangement: its slices are reflected, where they would be mixed."""

MOST = {
    "fold": 2, "window": 2, "shift": 0, "position": 0, "group": 1, "unshuffle": 1, "pool": 1,
    "widen": 1,
}  # fmt: skip
"""How many numbers may follow a name."""

KINDS = (
    "fold SIZE [SHIFT], window SIZE [SHIFT], shift, position, group SIZE, each with reflect in "
    "front or not, unshuffle SIZE, pool SIZE, widen FACTOR"
)


def read_word(text: str) -> Word:
    """A word of a plan.

    Raises:
        ValueError: an unknown name, or numbers that do not belong to it.

    Example:
        >>> read_word("reflect window 2")
        Word(name='window', numbers=(2,), reflected=True)
    """
    words = text.split()
    reflected = words[:1] == [REFLECT]
    name, *rest = words[reflected:] or [""]
    choose("layer of a plan", name, ARRANGEMENTS if reflected else MOST)
    if len(rest) > MOST[name] or not all(word.isdecimal() for word in rest):
        raise ValueError(f"a plan must be made of {KINDS}, got {text!r}; leave out what is more")
    return Word(name, tuple(map(int, rest)), reflected)


def read_plan(plan: Sequence[str]) -> list[Word]:
    """The words of a plan; see :func:`read_word`."""
    return [read_word(text) for text in plan]


def plan_layers(
    plan: Sequence[str], in_shape: tuple[int, int, int], absolute: float
) -> tuple[list[Layer], int]:
    """The layers of a plan on the maps that it makes of inputs of that shape, and how many numbers
    they end with.

    A window's map is rolled by half of its size unless the plan says by how much, so that windows
    in a row overlap; not that of a first layer.

    Raises:
        ValueError: a word that does not fit its map.
    """
    layers: list[Layer] = []
    shape = in_shape
    for word in read_plan(plan):
        channels, height, width = shape
        size = word.numbers[0] if word.numbers else 2
        if word.name == "widen":
            layers.append(Widen(size))
            shape = channels * size, height, width
        elif word.name == "unshuffle":
            layers.append(PixelUnshuffle(size))
            shape = channels * size**2, height // size, width // size
        elif word.name == "pool":
            layers.append(L2Pool(size))
            shape = channels, height // size, width // size
        else:
            first = all(isinstance(layer, PixelUnshuffle) for layer in layers)
            arrangement = _arranged(word, (height, width), first)
            layers.append(_sliced(arrangement, channels, absolute, word.reflected))
            if isinstance(arrangement, Folds):
                side = arrangement.size
                shape = channels * side**2, height // side, width // side
    return layers, math.prod(shape)


def _arranged(word: Word, map_size: tuple[int, int], first: bool) -> Arrangement:
    """The arrangement that a word names, on maps of that size."""
    kind, (size, *rest) = ARRANGEMENTS[word.name], word.numbers or (2,)
    if issubclass(kind, Windows):
        shift = rest[0] if rest else 0 if first else size // 2
        return kind(map_size, size, shift)
    return Groups(map_size, *word.numbers) if kind is Groups else kind(map_size)


def _sliced(arrangement: Arrangement, channels: int, absolute: float, reflected: bool) -> Layer:
    """The layer that mixes or reflects the slices of an arrangement."""
    if reflected:
        return OrthogonalReflection(arrangement, channels)
    _, side = arrangement.stack(channels)
    return OrthogonalMixing(arrangement, channels, round(absolute * side))


def default_plan(in_shape: tuple[int, int, int]) -> list[str]:
    """Folds down to a small map with windows between them, then pairs of pixels and groups.

    Maps are folded while their pixels keep to ``WIDEST`` channels, or have more than ``WIDEST``
    pixels: an entry then costs as much in a large image as in a small one, up to 128 x 128.

    Example:
        >>> default_plan((3, 32, 32))[:6]
        ['fold 4', 'window 2', 'window 2', 'window 2', 'window 2', 'fold 2']
    """
    channels, height, width = in_shape
    plan: list[str] = []

    def fold(factor: int) -> None:
        nonlocal channels, height, width
        plan.append(f"fold {factor}")
        channels, height, width = channels * factor**2, height // factor, width // factor

    if height % 8 == 0 and width % 8 == 0 and min(height, width) > 2 * SMALL:
        fold(4)
    while _is_folded(channels, height, width):
        if plan:
            plan += ["window 2"] * WINDOWS
        fold(2)
    fitting = max(1, WIDEST // (height * width))
    group = max(size for size in range(1, fitting + 1) if channels % size == 0)
    return [*plan, *(["window 1", f"group {group}"] * PAIRS)]


def _is_folded(channels: int, height: int, width: int) -> bool:
    """Whether a plan folds such a map once more."""
    even = height % 2 == width % 2 == 0
    large, narrow = height * width > WIDEST, 4 * channels <= WIDEST
    return even and max(height, width) > SMALL and (large or narrow)
