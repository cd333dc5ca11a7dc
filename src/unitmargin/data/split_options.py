"""How test samples are drawn of data that come without: of images and of tables alike."""

from typing import Annotated

from pydantic import Field, NonNegativeInt

from unitmargin.foundation.options import Options

TEST_SHARE = 0.2

LABELS = ("label", "target", "class", "y")
"""Names of the label column where none is given."""


class SplitOptions(Options):
    """A share of each class that is kept for the test, and the seed of its choice.

    Attributes:
        test_share: share of each class that is kept for the test, where nothing else is. Default:
            0.2.
        split_seed: of that choice, which depends on it and on the samples, not on their order.
            Default: 0.
    """

    test_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    split_seed: NonNegativeInt | None = None

    def choice(self) -> tuple[float, int]:
        """Share and seed, with their defaults."""
        return self.test_share or TEST_SHARE, self.split_seed or 0
