"""Plans of mixing networks: one word for each layer, such as ``fold 4`` or ``window 2``."""

from collections.abc import Sequence
from typing import NamedTuple

from unitmargin.foundation.choice import choose
from unitmargin.layers.rearrangement import Widen
from unitmargin.layers.slices import ARRANGEMENTS, Arrangement, Folds, Groups, Positions, Shifts

SMALL = 4
"""Sides up to which a map is mixed as a whole: a group of 16 channels has 256 entries there."""

WIDEST = 256
"""Entries of a group's slices: matrices twice as wide cost twice as much, and gained nothing."""

WINDOWS = 4
"""Window layers on a large map."""

PAIRS = 4
"""Pairs of a layer of pixels and one of groups on a small map."""


class Word(NamedTuple):
    """A word of a plan: an arrangement's name, and its numbers."""

    name: str
    numbers: tuple[int, ...]


MOST = {"widen": 1, "fold": 2, "window": 2, "shift": 0, "position": 0, "group": 1}
"""How many numbers may follow a name."""


def read_word(text: str) -> Word:
    """A word of a plan.

    Raises:
        ValueError: an unknown name, or numbers that do not belong to it.

    Example:
        >>> read_word("window 2")
        Word(name='window', numbers=(2,))
    """
    name, *rest = text.split() or [""]
    choose("layer of a plan", name, MOST)
    if len(rest) > MOST[name] or not all(word.isdecimal() for word in rest):
        kinds = "fold SIZE [SHIFT], window SIZE [SHIFT], shift, position, group SIZE, widen FACTOR"
        raise ValueError(f"a plan must be made of {kinds}, got {text!r}; leave out what is more")
    return Word(name, tuple(map(int, rest)))


def read_plan(plan: Sequence[str]) -> list[Word]:
    """The words of a plan; see :func:`read_word`."""
    return [read_word(text) for text in plan]


def arrange(plan: Sequence[str], in_shape: tuple[int, int, int]) -> list[Arrangement | Widen]:
    """The arrangements of a plan on the maps that it makes of inputs of that shape, and wideners.

    A window's map is rolled by half of its size unless the plan says by how much, so that windows
    in a row overlap.

    Raises:
        ValueError: a word that does not fit its map.
    """
    _, height, width = in_shape
    arranged: list[Arrangement | Widen] = []
    for name, numbers in read_plan(plan):
        size = (height, width)
        one: Arrangement | Widen
        if name == "widen":
            one = Widen(*numbers)
        elif name in ("fold", "window"):
            side = numbers[0] if numbers else 2
            shift = numbers[1] if len(numbers) > 1 else (side // 2 if arranged else 0)
            one = ARRANGEMENTS[name](size, side, shift)  # type: ignore[call-arg]
        elif name == "group":
            one = Groups(size, *numbers)
        else:
            one = {"shift": Shifts, "position": Positions}[name](size)
        arranged.append(one)
        if isinstance(one, Folds):
            height, width = height // one.size, width // one.size
    return arranged


def default_plan(in_shape: tuple[int, int, int]) -> list[str]:
    """Folds down to a small map with windows between them, then pairs of pixels and groups.

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
    while height % 2 == 0 and width % 2 == 0 and max(height, width) > SMALL:
        if plan:
            plan += ["window 2"] * WINDOWS
        fold(2)
    fitting = max(1, WIDEST // (height * width))
    group = max(size for size in range(1, fitting + 1) if channels % size == 0)
    return [*plan, *(["window 1", f"group {group}"] * PAIRS)]
