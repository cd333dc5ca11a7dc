"""The pixels of one encoded image."""

import io

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from unitmargin.data.files import DataError

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""Named, because Pillow would otherwise try decoders that start other programs."""

COLOUR_MODES = ("1", "P", "RGB", "RGBA", "CMYK", "YCbCr")


def pixels(content: bytes, name: str) -> UInt8[np.ndarray, "height width *channels"]:
    """The pixels of an encoded image; only 8-bit grey without transparency counts as grey.

    Shapes: ``(height, width)`` if the image is grey, else ``(height, width, 3)`` in RGB.

    Raises:
        DataError: content that is no whole image, more than 8 bits a channel, or transparent
            pixels, whose colour depends on what lies behind; the message begins with ``name``.

    Example:
        >>> pixels(Path("cat.png").read_bytes(), "cat.png").shape  # doctest: +SKIP
        (32, 32, 3)
    """
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            image.load()
            return np.asarray(_grey_or_colour(image, name))
    except DataError:
        raise
    # Decoders meet damaged bytes with errors of many types, none of them documented.
    except Exception as fault:
        raise DataError(
            f"{name}: must be a whole image ({', '.join(FORMATS)}), got: {fault}; "
            "repair or remove the file"
        ) from fault


def _grey_or_colour(image: Image.Image, name: str) -> Image.Image:
    if image.has_transparency_data:
        image = image.convert("RGBA")
        least_opaque = image.getchannel("A").getextrema()[0]
        if least_opaque != 255:
            raise DataError(
                f"{name}: must have no transparent pixels, got opacity {least_opaque} of 255; "
                "paint the image on a background"
            )
    if image.mode == "L":
        return image
    if image.mode not in COLOUR_MODES:
        raise DataError(
            f"{name}: must have 8 bits a channel in grey or RGB, got Pillow mode {image.mode!r}; "
            "convert the image"
        )
    return image.convert("RGB")
