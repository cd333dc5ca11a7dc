"""The pixels of one encoded image."""

import io

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps, UnidentifiedImageError
from PIL.PngImagePlugin import PngImageFile
from PIL.PpmImagePlugin import PpmImageFile
from PIL.TiffImagePlugin import BITSPERSAMPLE, SAMPLEFORMAT, TiffImageFile

from unitmargin.data.files import DataError

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""Named, because Pillow would otherwise try decoders that start other programs."""

PNG_BIT_DEPTH = 24
"""Place of that byte in a PNG file: its header chunk must be the first."""

UNSIGNED = 1
"""Sample format of a TIFF file without a statement of it."""

COLOUR_MODES = ("1", "P", "RGB", "RGBA", "CMYK", "YCbCr")


def pixels(
    content: bytes, name: str, resize: int | None = None, channels: int | None = None
) -> UInt8[np.ndarray, "height width *channels"]:
    """The pixels of an encoded image; only 8-bit grey without transparency counts as grey.

    With ``resize`` the middle square is cut out and scaled to that many pixels on each side: every
    pixel is a mean of those that it covers, weighted linearly (antialiased bilinear).
    ``channels`` 1 turns colours into grey (ITU-R 601), 3 repeats grey.

    Shapes: ``(height, width)`` if the image is grey, else ``(height, width, 3)`` in RGB.
    Guarantee: turned as the file says (EXIF), and nothing of the file is cut unless ``resize`` asks
    for it; an image of the size asked for stays as it is.

    Raises:
        DataError: content that is no whole image, several frames, more than 8 bits a channel, or
            transparent pixels, whose colour depends on what lies behind; the message begins with
            ``name``.

    Example:
        >>> pixels(Path("cat.png").read_bytes(), "cat.png").shape  # doctest: +SKIP
        (32, 32, 3)
    """
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            _require_one_frame(image, name)
            _require_8_bits(image, content, name)
            image.load()
            shown = _grey_or_colour(ImageOps.exif_transpose(image), name)
            if channels is not None:
                shown = shown.convert("L" if channels == 1 else "RGB")
            return np.asarray(shown if resize is None else _resized(shown, resize))
    except DataError:
        raise
    # Decoders meet damaged bytes with errors of many types, none of them documented.
    except Exception as fault:
        unknown = "bytes of no such format" if content else "no bytes"
        reason = unknown if isinstance(fault, UnidentifiedImageError) else fault
        raise DataError(
            f"{name}: must be a whole image ({', '.join(FORMATS)}), got: {reason}; "
            "repair or remove the file"
        ) from fault


def _resized(image: Image.Image, side: int) -> Image.Image:
    """Whole pixels are cut away first: a long strip takes no memory, and no pixel is moved."""
    width, height = image.size
    short = min(width, height)
    left, top = (width - short) // 2, (height - short) // 2
    middle = left, top, left + short, top + short
    return image.resize((side, side), Image.Resampling.BILINEAR, box=middle)


def _require_one_frame(image: Image.Image, name: str) -> None:
    frames = getattr(image, "n_frames", 1)
    if frames != 1:
        raise DataError(
            f"{name}: must hold one image, got {frames} frames; "
            "save each frame that belongs to the class as a file of its own"
        )


def _require_8_bits(image: Image.Image, content: bytes, name: str) -> None:
    """From the file itself: Pillow reads 16 bits of a colour as 8 without a word."""
    got = ""
    if isinstance(image, PngImageFile):
        if content[12:16] != b"IHDR":
            raise ValueError("a PNG file that does not begin with its header")
        bits = content[PNG_BIT_DEPTH]
    elif isinstance(image, TiffImageFile):
        depths = image.tag_v2.get(BITSPERSAMPLE, (1,))
        bits = max(depths)
        if set(image.tag_v2.get(SAMPLEFORMAT, (UNSIGNED,))) != {UNSIGNED}:
            got = f"{bits} bits that are not all unsigned integers"
        elif len(depths) > len(image.getbands()):
            got = f"{len(depths)} channels"
    elif isinstance(image, PpmImageFile):
        # The decoder's arguments: the largest value stands behind the mode, if it is not 255.
        arguments = image.tile[0][3]
        bits = int(arguments[1]).bit_length() if isinstance(arguments, tuple) else 8
    else:
        bits = 8
    if bits > 8 or got:
        raise DataError(
            f"{name}: must have 8 bits a channel in grey or RGB, got {got or f'{bits} bits'}; "
            "convert the image"
        )


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
