"""What a file may say: JSON that reads in one way only, and limits of everything it can name.

A file is somebody else's. Reading one takes time and memory in proportion to its size: what it only
names, such as the sides of a map, is compared with what it holds before anything of that size is
made. The loader of model files has the same limits, by its own code.
"""

import json
import math
from typing import Any

LONGEST_HEADER = 2**22
"""Bytes of a header: a thousand layers and the names of 20,000 classes need a third. As objects of
Python it takes twenty times as much memory."""

MOST_LAYERS = 1000
"""Layers of a network, those of branches included: published ones have fewer than 200."""

DEEPEST_BRANCH = 8
"""Branches within branches; the peers' networks have one."""

DEEPEST_JSON = 64
"""Lists and objects within each other: twice what the deepest branches need, and far from where the
parser gives up, which depends on who calls it."""

LONGEST_NAME = 1000
"""Characters of the name of a class."""

MOST_AXES = 8
"""Axes of a tensor or of an input."""

LARGEST_SIDE = 1024
"""Side of a map that a configuration names: the table of cosines of a convolution takes 8 MiB
here."""

LARGEST_INPUT = 2**28
"""Numbers of one input, and largest size that a file may name."""

MAY_BE_ZERO = ("absolute", "shift")
"""Numbers of a configuration that count something of which there may be none."""


def parse(text: str | bytes) -> Any:
    """JSON without a key that occurs twice, a number that is not finite or begins with -0 and has
    no fraction, half a surrogate pair, or nesting beyond DEEPEST_JSON."""
    words = text.decode() if isinstance(text, bytes) else text
    value = json.loads(
        words,
        object_pairs_hook=_unique,
        parse_int=_whole,
        parse_float=_finite,
        parse_constant=_finite,
    )
    level = [value]
    for _ in range(DEEPEST_JSON):
        lists = [inner if isinstance(inner, list) else inner.values()
                 for inner in level if isinstance(inner, list | dict)]  # fmt: skip
        level = [inner for entries in lists for inner in entries]
    if level:
        raise ValueError(f"its JSON has more than {DEEPEST_JSON} levels")
    json.dumps(value, ensure_ascii=False).encode()  # refuses half a surrogate pair
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys differ: two readers might believe two different ones."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key of its header occurs twice")
    return dict(pairs)


def _whole(text: str) -> int:
    if text == "-0":
        raise ValueError("-0 is no whole number")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text:.20} is no finite number")
    return number


def is_size(value: object) -> bool:
    """Whether a value of JSON is a whole number that may count something; true is none."""
    return type(value) is int and 1 <= value <= LARGEST_INPUT


def may_be(name: str, value: object) -> bool:
    """Whether a configuration may say so: a size, a list of the sides of a map, or nothing of what
    there need not be."""
    if name == "map_size":
        return isinstance(value, list) and all(map(is_size, value))
    return is_size(value) or (name in MAY_BE_ZERO and type(value) is int and value == 0)


def one_line(text: str) -> str:
    """The text without line ends and signs that cannot be printed, its middle left out."""
    line = "".join(sign if sign.isprintable() else " " for sign in " ".join(text.split()))
    return line if len(line) <= 1000 else f"{line[:500]} ... {line[-500:]}"
