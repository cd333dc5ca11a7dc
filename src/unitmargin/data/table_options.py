"""How a table is read."""

from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveFloat

from unitmargin.data.encoding import SCALES
from unitmargin.foundation.options import Options, among

TEST_SHARE = 0.2
"""Of each class, where neither a share nor a table of test rows is given."""


class TableOptions(Options):
    """How a table is read; of no meaning for other data.

    Attributes:
        label: column of the classes; default: the one that is called label, target, class or y.
        test: table of the test rows; default: a share of each class.
        test_share: of each class that the test rows are; default: 0.2.
        split_seed: of that split, which depends on it and on the rows, not on their order; default:
            0.
        scale: none, features (standard deviations of the training rows) or units.
        units: lengths of columns that count as 1, under the scale units; 1 for all others.
        categories: columns of numbers that are read as words.
        ignore: columns that are left out.
    """

    label: str | None = None
    test: str | None = None
    test_share: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    split_seed: NonNegativeInt | None = None
    scale: Annotated[str, among("scale", SCALES)] = "none"
    units: dict[str, PositiveFloat] = Field(default_factory=dict)
    categories: list[str] = Field(default_factory=list)
    ignore: list[str] = Field(default_factory=list)
