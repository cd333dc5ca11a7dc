"""How a table is read."""

from typing import Annotated

from pydantic import Field, PositiveFloat

from unitmargin.data.encoding import SCALES
from unitmargin.data.split_options import SplitOptions
from unitmargin.foundation.options import among


class TableOptions(SplitOptions):
    """How a table is read; of no meaning for other data.

    A split is drawn where no table of test rows is named.

    Attributes:
        label: column of the classes; default: the one that is called label, target, class or y.
        test: table of the test rows; default: a share of each class.
        scale: none, features (standard deviations of the training rows) or units.
        units: lengths of columns that count as 1, under the scale units; 1 for all others.
        categories: columns of numbers that are read as words.
        ignore: columns that are left out.
    """

    label: str | None = None
    test: str | None = None
    scale: Annotated[str, among("scale", SCALES)] = "none"
    units: dict[str, PositiveFloat] = Field(default_factory=dict)
    categories: list[str] = Field(default_factory=list)
    ignore: list[str] = Field(default_factory=list)
