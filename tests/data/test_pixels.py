"""Pixels of image files: those that were stored, in grey or colour; damaged ones are refused."""

import io

import numpy as np
import pytest
from data.tiny import png
from PIL import Image

from unitmargin.data.files import DataError
from unitmargin.data.pixels import pixels


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind)
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "GIF"])
def test_pixels_are_those_that_were_stored(kind: str) -> None:
    stored = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    found = pixels(encoded(Image.fromarray(stored), kind), "x")
    assert np.array_equal(found.reshape(3, 4, -1)[..., 0], stored)


@pytest.mark.parametrize(
    ("content", "shape"),
    [
        (png(7, mode="L"), (4, 4)),
        (png(7, mode="RGB"), (4, 4, 3)),
        (png(1, mode="1"), (4, 4, 3)),
        (png(0, mode="P"), (4, 4, 3)),
        (png(255, mode="RGBA"), (4, 4, 3)),
        (png(255, mode="LA"), (4, 4, 3)),
        (encoded(Image.new("CMYK", (4, 4)), "JPEG"), (4, 4, 3)),
    ],
)
def test_only_8_bit_grey_has_no_channels(content: bytes, shape: tuple[int, ...]) -> None:
    found = pixels(content, "x")
    assert found.shape == shape
    assert found.dtype == np.uint8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not an image", "a.png: must be a whole image"),
        (b"", "a.png: must be a whole image"),
        (png(100, mode="RGBA"), "a.png: must have no transparent pixels, got opacity 100 of 255"),
        (png(100, mode="I;16"), "a.png: must have 8 bits a channel"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n", "a.png: must be a whole image"),
    ],
)
def test_pixels_refuse(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        pixels(content, "a.png")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP"])
def test_an_image_cut_short_is_refused(kind: str) -> None:
    noise = np.random.default_rng(0).integers(256, size=(32, 32, 3), dtype=np.uint8)
    content = encoded(Image.fromarray(noise), kind)
    with pytest.raises(DataError, match=r"a.any: .*truncated"):
        pixels(content[: len(content) // 2], "a.any")
