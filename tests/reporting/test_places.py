"""Places by their last parts."""

import doctest
from pathlib import Path

from unitmargin.reporting import places
from unitmargin.reporting.places import shortest_places


def test_examples() -> None:
    assert doctest.testmod(places).failed == 0


def test_what_cannot_be_told_apart_is_told_as_it_is() -> None:
    assert shortest_places([]) == []
    assert shortest_places([Path("x/a"), Path("x/a")]) == ["a", "a"]
    assert shortest_places([Path("a"), Path("x/a")]) == ["a", "x/a"]
