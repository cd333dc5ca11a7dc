"""How a data set is made of images."""

from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt

from unitmargin.foundation.options import Options

LARGEST_SIDE = 4096
"""Pixels of a side: an image of that size takes 50 MB, and no network is fed larger ones."""

TEST_SHARE = 0.2

PREPARATION = ("resize", "channels")
"""Options that say how an image becomes an input."""

Share = Annotated[float, Field(gt=0, lt=1)]
Side = Annotated[int, Field(gt=0, le=LARGEST_SIDE)]


class ImageOptions(Options):
    """How a data set is made of images; what is left out follows from the images.

    Attributes:
        resize: the shorter side gets this many pixels and the longer one is cut to its middle, so
            that inputs are square; radii are in the units of the resized pixels. Default: all
            images have one size.
        channels: 1 makes all images grey, 3 all coloured. Default: 1 if all are grey, else 3.
        test_share: share of the images of each class that are kept for the test, where there is no
            folder of them. Default: 0.2.
        split_seed: of the choice of those images. Default: 0.
    """

    resize: Side | None = None
    channels: Literal[1, 3] | None = None
    test_share: Share | None = None
    split_seed: NonNegativeInt | None = None

    def images(self) -> dict[str, Any]:
        """The given options that say how an image becomes an input."""
        return {name: value for name, value in self.given().items() if name in PREPARATION}

    def given(self) -> dict[str, Any]:
        """The options that are not left out."""
        return {
            name: value
            for name in ImageOptions.model_fields
            if (value := getattr(self, name)) is not None
        }
