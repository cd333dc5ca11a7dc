"""What a reproduction is: recipes to train, and what is written from their run folders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from unitmargin.paper.layout import Table
from unitmargin.runs.folder import RunFolder


@dataclass(frozen=True)
class Output:
    """Tables, and figures by name, each with the caption that says what it shows."""

    tables: list[Table]
    figures: dict[str, tuple[Figure, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """One table or figure of the paper.

    Attributes:
        recipes: names of the embedded recipes of its rows; none where nothing is trained.
        searches: whether its runs must be verified by solvers.
        write: from run folders, of any recipes, to tables and figures.
        takes: whether a run stands in them.
    """

    recipes: tuple[str, ...]
    searches: bool
    write: Callable[[Sequence[RunFolder]], Output]
    takes: Callable[[RunFolder], bool] = lambda run: True
