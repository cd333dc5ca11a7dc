"""How a data set is made of images."""

from typing import Annotated, Any, Literal

from pydantic import Field

from unitmargin.data.split_options import SplitOptions

LARGEST_SIDE = 4096
"""Pixels of a side: an image of that size takes 50 MB, and no network is fed larger ones."""

PREPARATION = ("resize", "channels", "label")
"""Options that say how an image becomes an input, and where its label is found."""

Side = Annotated[int, Field(gt=0, le=LARGEST_SIDE)]


class ImageOptions(SplitOptions):
    """How a data set is made of images; what is left out follows from the images.

    A split is drawn where there is no folder of test images.

    Attributes:
        resize: the middle square of an image, scaled to this many pixels on each side; radii are in
            the units of the resized pixels. Default: all images have one size.
        label: of images in Parquet files, the column of the classes. Default: the one called label,
            target, class or y, or that the schema states to be one.
        channels: 1 makes all images grey, 3 all coloured. Default: 1 if all are grey, else 3.
    """

    resize: Side | None = None
    label: str | None = None
    channels: Literal[1, 3] | None = None

    def images(self) -> dict[str, Any]:
        """The given options of ``PREPARATION``."""
        return {name: value for name, value in self.given().items() if name in PREPARATION}

    def given(self) -> dict[str, Any]:
        """The options that are not left out."""
        return {
            name: value
            for name in ImageOptions.model_fields
            if (value := getattr(self, name)) is not None
        }
