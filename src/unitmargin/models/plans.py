"""Plans of mixing networks: one word for each layer, such as ``fold 4`` or ``window 2``."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from unitmargin.foundation.choice import choose
from unitmargin.foundation.numbers import shown
from unitmargin.layers.contract import Layer
from unitmargin.layers.l2_pool import L2Pool
from unitmargin.layers.rearrangement import PixelUnshuffle, Widen
from unitmargin.layers.slices import ARRANGEMENTS, EIGHTHS, Arrangement, Folds, Groups, Windows
from unitmargin.orthogonal.mixing import OrthogonalMixing
from unitmargin.orthogonal.reflection import OrthogonalReflection

SMALL = 4
"""Sides up to which a map is mixed as a whole: a group of 16 channels has 256 entries there."""

MOST_PIXELS = 64
"""Pixels of a last map, of which a head of many classes sees few."""

LARGEST_FACTOR = 5
"""Side of the windows that become a pixel at once."""

LARGEST_GROUP = 1024
"""Pixels of a map that a default plan mixes as a whole, with a matrix of that side a channel."""

WIDEST, MOST_CHANNELS = 256, 320
"""Entries of a group's slices, and channels to which maps are folded: matrices twice as wide cost
twice as much, and gained nothing."""

WINDOWS, SHIFTS = 4, 2
"""Window layers on a large map, and layers of shifts on one that is pooled."""

PAIRS = 4
"""Pairs of a layer of pixels and one of groups on a small map."""

LARGEST_SLICE = 2**14
"""Numbers of a slice of a plan: its matrix has 1 GiB in float32."""


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

DIGITS = 6
"""Of a number in a plan at most: no image has more pixels a side."""

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
    if len(rest) > MOST[name]:
        raise ValueError(f"a plan must be made of {KINDS}, got {text!r}; leave out what is more")
    if not all(word.isdecimal() and len(word) <= DIGITS for word in rest):
        raise ValueError(
            f"numbers of a plan must be whole, not negative and of {DIGITS} digits at most, got "
            f"{shown(text)}; correct them"
        )
    return Word(name, tuple(map(int, rest)), reflected)


def read_plan(plan: Sequence[str]) -> list[Word]:
    """The words of a plan; see :func:`read_word`.

    Raises:
        TypeError: no list of words.
    """
    listed = isinstance(plan, Sequence) and not isinstance(plan, str)
    if not listed or not all(isinstance(text, str) for text in plan):
        raise TypeError(
            f"plan must be a list such as ['fold 2', 'group 4'], got {shown(plan)}; list its words"
        )
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
        if word.name in ("unshuffle", "pool") and (size < 1 or height % size or width % size):
            raise ValueError(
                f"{word.name} {size} of a plan must divide the sides of its map, got {height} x "
                f"{width}; choose another number, or leave it out"
            )
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
            _require_small(word, arrangement, channels)
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


def _require_small(word: Word, arrangement: Arrangement, channels: int) -> None:
    """Raise for a word whose slices are above ``LARGEST_SLICE``."""
    _, side = arrangement.stack(channels)
    if side > LARGEST_SLICE:
        raise ValueError(
            f"{word.name} of a plan must take slices of at most {LARGEST_SLICE} numbers, got "
            f"{side} of {channels} channels; widen less, or take smaller slices"
        )


def _sliced(arrangement: Arrangement, channels: int, absolute: float, reflected: bool) -> Layer:
    """The layer that mixes or reflects the slices of an arrangement."""
    if reflected:
        return OrthogonalReflection(arrangement, channels)
    _, side = arrangement.stack(channels)
    return OrthogonalMixing(arrangement, channels, round(absolute * side))


def default_plan(in_shape: tuple[int, int, int]) -> list[str]:
    """Folds with windows between them while pixels keep to ``MOST_CHANNELS``, pools of norms with
    shifts between them down to a small map, or to where no common factor is left, then pairs of
    pixels and groups.

    An entry costs as much in a large image as in a small one, and a head of many classes sees few.

    Raises:
        ValueError: a large map whose sides have no common divisor.

    Example:
        >>> default_plan((3, 32, 32))[:6]
        ['fold 4', 'window 2', 'window 2', 'window 2', 'window 2', 'fold 2']
    """
    channels, height, width = in_shape
    plan: list[str] = []

    def divide(factor: int) -> None:
        nonlocal height, width
        height, width = height // factor, width // factor

    if height % 8 == width % 8 == 0 and min(height, width) > 2 * SMALL:
        plan, channels = ["fold 4"], channels * 16
        divide(4)
    while max(height, width) > SMALL and (factor := _factor(height, width)):
        if channels * factor**2 > MOST_CHANNELS:
            break
        plan += [f"window {factor}"] * WINDOWS if plan else []
        plan, channels = [*plan, f"fold {factor}"], channels * factor**2
        divide(factor)
    while height * width > MOST_PIXELS and (factor := _factor(height, width)):
        plan += [*["shift"] * (SHIFTS if channels >= EIGHTHS else 0), f"pool {factor}"]
        divide(factor)
    if height * width > LARGEST_GROUP:
        raise ValueError(
            "in_shape must be of sides with small common divisors where no plan is given, got "
            f"{in_shape[1]} x {in_shape[2]}; resize the images, to 64 x 64 for example"
        )
    fitting = max(1, WIDEST // (height * width))
    group = max(size for size in range(1, fitting + 1) if channels % size == 0)
    return [*plan, *(["window 1", f"group {group}"] * PAIRS)]


def _factor(height: int, width: int) -> int:
    """The smallest number above 1 that divides both sides; 0 if it is above ``LARGEST_FACTOR``."""
    common = math.gcd(height, width)
    return next((n for n in range(2, LARGEST_FACTOR + 1) if common % n == 0), 0)
