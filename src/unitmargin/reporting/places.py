"""Folders by as few words as tell them apart."""

from collections.abc import Sequence
from pathlib import Path


def shortest_places(places: Sequence[Path]) -> list[str]:
    """Of each place as many of its last parts as tell all of them apart, or as there are.

    Example:
        >>> shortest_places([Path("old/b"), Path("new/b"), Path("new/c")])
        ['old/b', 'new/b', 'new/c']
    """
    parts = [place.parts for place in places]
    longest, length = max(map(len, parts), default=1), 1
    while length < longest and len({each[-length:] for each in parts}) < len({*parts}):
        length += 1
    return [str(Path(*each[-length:])) for each in parts]
