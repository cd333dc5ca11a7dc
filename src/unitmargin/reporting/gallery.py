"""The gallery of a report: images of test samples and their closest adversarial points."""

import base64
import io
import math

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from unitmargin.certificates.exhibits import Exhibit

LARGEST_DIFFERENCE = 0.5
"""An amplified difference fills at most this much on either side of mid grey."""


MOST = 1e15
"""Largest factor."""


def amplification(exhibit: Exhibit) -> int:
    """Factor 1, 2, 5, 10, ... that makes the difference of the two inputs visible.

    The largest that keeps ``factor * difference`` within ``LARGEST_DIFFERENCE``, and at least 1.
    Differences below 1e-15 stay what they are made of: rounding.
    """
    largest = float((exhibit.adversarial - exhibit.original).abs().max())
    if largest == 0.0:
        return 1
    room = min(LARGEST_DIFFERENCE / largest, MOST)
    decade = int(10 ** max(math.floor(math.log10(room)), 0))
    return max(factor * decade for factor in (1, 2, 5) if factor == 1 or factor * decade <= room)


def image_source(pixels: Float[Tensor, "channels height width"]) -> str:
    """A PNG of an image with values in [0, 1] (others are clipped), as a data address."""
    values = (pixels.clamp(0.0, 1.0) * 255.0).round().to(torch.uint8).movedim(0, -1)
    grey = values.shape[-1] == 1
    image = Image.fromarray(np.ascontiguousarray(values.squeeze(-1) if grey else values))
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def difference_source(exhibit: Exhibit) -> str:
    """The amplified difference around mid grey, as a data address."""
    difference = exhibit.adversarial - exhibit.original
    return image_source(0.5 + amplification(exhibit) * difference)
