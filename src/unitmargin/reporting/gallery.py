"""The gallery of a report: images of test samples and their closest adversarial points."""

import base64
import io
import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from unitmargin.certificates.exhibits import Exhibit

LARGEST_DIFFERENCE = 0.5
"""An amplified difference fills at most this share of the range on either side of mid grey."""


MOST = 1e15
"""Largest factor."""

Ends = tuple[float, float]
"""The entries that are shown black and white."""

PIXELS = (0.0, 1.0)


def shown_range(input_range: Sequence[float]) -> Ends:
    """Of test inputs from the one number to the other, what is shown black and white: the ends of
    [0, 1] if all lie in it, as pixels do, and their own otherwise."""
    low, high = input_range
    if low >= PIXELS[0] and high <= PIXELS[1]:
        return PIXELS
    return low, high if high > low else low + 1.0


def amplification(exhibit: Exhibit, ends: Ends = PIXELS) -> int:
    """Factor 1, 2, 5, 10, ... that makes the difference of the two inputs visible.

    The largest that keeps ``factor * difference`` within ``LARGEST_DIFFERENCE`` of the range, and
    at least 1. Differences below 1e-15 of it stay what they are made of: rounding.
    """
    largest = float(_shares(exhibit.adversarial - exhibit.original, ends).abs().max())
    if largest == 0.0:
        return 1
    room = min(LARGEST_DIFFERENCE / largest, MOST)
    decade = int(10 ** max(math.floor(math.log10(room)), 0))
    return max(factor * decade for factor in (1, 2, 5) if factor == 1 or factor * decade <= room)


def image_source(pixels: Float[Tensor, "channels height width"], ends: Ends = PIXELS) -> str:
    """A PNG of an image with values between the ends (others are clipped), as a data address."""
    shares = _shares(pixels - ends[0], ends).clamp(0.0, 1.0)
    values = (shares * 255.0).round().to(torch.uint8).movedim(0, -1)
    grey = values.shape[-1] == 1
    image = Image.fromarray(np.ascontiguousarray(values.squeeze(-1) if grey else values))
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def difference_source(exhibit: Exhibit, ends: Ends = PIXELS) -> str:
    """The amplified difference around mid grey, as a data address."""
    difference = _shares(exhibit.adversarial - exhibit.original, ends)
    return image_source(0.5 + amplification(exhibit, ends) * difference)


def _shares(lengths: Tensor, ends: Ends) -> Tensor:
    """Differences of entries as shares of the range."""
    return lengths / (ends[1] - ends[0])
