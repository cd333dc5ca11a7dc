"""Pixels of image files: those that were stored, in grey or colour; damaged ones are refused."""

import io
import struct
import zlib

import numpy as np
import pytest
from data.tiny import one_pixel_png, photo, png
from PIL import ExifTags, Image

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
        (b"not an image", "a.png: must be a whole image .*, got: bytes of no such format;"),
        (b"", "a.png: must be a whole image .*, got: no bytes;"),
        (png(100, mode="RGBA"), "a.png: must have no transparent pixels, got opacity 100 of 255"),
        (png(100, mode="I;16"), "a.png: must have 8 bits a channel"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n", "a.png: must be a whole image"),
    ],
)
def test_pixels_refuse(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        pixels(content, "a.png")


PNG_COLOURS = {"grey": 0, "RGB": 2, "grey and alpha": 4, "RGBA": 6}


@pytest.mark.parametrize("colours", PNG_COLOURS)
def test_a_png_of_16_bits_is_refused(colours: str) -> None:
    content = one_pixel_png(16, PNG_COLOURS[colours])
    with pytest.raises(DataError, match=r"^a.png: must have 8 bits .* got 16 bits; convert"):
        pixels(content, "a.png")


def test_a_png_whose_header_is_not_the_first_is_refused() -> None:
    whole = one_pixel_png(16, 2)
    text = b"\0\0\0\0tEXt" + zlib.crc32(b"tEXt").to_bytes(4, "big")
    with pytest.raises(DataError, match=r"a.png: must be a whole image"):
        pixels(whole[:8] + text + whole[8:], "a.png")


@pytest.mark.parametrize(
    "content",
    [
        b"P6 1 1 65535\n" + bytes(6),
        b"P6 1 1 256\n" + bytes(6),
        b"P3 1 1 1023\n1 2 3\n",
        b"P5 1 1 65535\n" + bytes(2),
        b"P5 1 1 1023\n" + bytes(2),
        b"Pf 1 1 -1.0\n" + bytes(4),
    ],
)
def test_a_portable_pixmap_of_more_than_8_bits_is_refused(content: bytes) -> None:
    with pytest.raises(DataError, match=r"^a.ppm: must have 8 bits a channel"):
        pixels(content, "a.ppm")


@pytest.mark.parametrize("largest", [1, 15, 255])
def test_a_portable_pixmap_of_fewer_bits_is_read(largest: int) -> None:
    content = f"P6 1 1 {largest}\n".encode() + bytes((0, largest, 0))
    assert pixels(content, "a.ppm").tolist() == [[[0, 255, 0]]]


def tiff(values: np.ndarray, **tags: tuple[int, ...]) -> bytes:
    """An uncompressed TIFF file with one strip, which Pillow does not write at every depth."""
    height, width, channels = values.shape
    fields = [
        (256, 3, (width,)), (257, 3, (height,)), (258, 3, (8 * values.itemsize,) * channels),
        (259, 3, (1,)), (262, 3, (1 if channels < 3 else 2,)), (273, 4, (8,)),
        (277, 3, (channels,)), (278, 3, (height,)), (279, 4, (values.nbytes,)),
        *((int(tag), 3, found) for tag, found in sorted(tags.items())),
    ]  # fmt: skip
    table, place = b"", 8 + values.nbytes
    outside = b""
    end = place + 2 + 12 * len(fields) + 4
    for tag, kind, found in fields:
        packed = struct.pack(f"<{len(found)}{'H' if kind == 3 else 'I'}", *found)
        if len(packed) > 4:
            packed, outside = struct.pack("<I", end + len(outside)), outside + packed
        table += struct.pack("<HHI", tag, kind, len(found)) + packed.ljust(4, b"\0")
    header = struct.pack("<2sHI", b"II", 42, place)
    count = struct.pack("<H", len(fields))
    return header + values.tobytes() + count + table + bytes(4) + outside


@pytest.mark.parametrize(
    ("values", "tags", "got"),
    [
        (np.zeros((2, 2, 1), np.uint16), {}, "16 bits"),
        (np.zeros((2, 2, 3), np.uint16), {}, "16 bits"),
        (np.zeros((2, 2, 4), np.uint16), {"338": (2,)}, "16 bits"),
        (np.zeros((2, 2, 1), np.int32), {"339": (2,)}, "32 bits that are not all unsigned"),
        (np.zeros((2, 2, 1), np.float32), {"339": (3,)}, "32 bits that are not all unsigned"),
        (np.zeros((2, 2, 1), np.int8), {"339": (2,)}, "8 bits that are not all unsigned"),
        (np.zeros((2, 2, 4), np.uint8), {"338": (0,)}, "4 channels"),
    ],
)
def test_a_tiff_that_would_be_cut_is_refused(
    values: np.ndarray, tags: dict[str, tuple[int, ...]], got: str
) -> None:
    with pytest.raises(DataError, match=f"^a.tif: must have 8 bits .* got {got}.*; convert"):
        pixels(tiff(values, **tags), "a.tif")


def test_a_tiff_of_8_bits_is_read() -> None:
    values = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert np.array_equal(pixels(tiff(values), "a.tif"), values)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_as_their_file_says(kind: str, orientation: int) -> None:
    stored = np.arange(18, dtype=np.uint8).reshape(2, 3, 3) * 10
    shown = {
        1: stored,
        2: stored[:, ::-1],
        3: stored[::-1, ::-1],
        4: stored[::-1],
        5: stored.swapaxes(0, 1),
        6: np.rot90(stored, -1),
        7: stored[::-1, ::-1].swapaxes(0, 1),
        8: np.rot90(stored),
    }[orientation]
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    stream = io.BytesIO()
    Image.fromarray(stored).save(stream, kind, exif=exif, lossless=True)
    assert np.array_equal(pixels(stream.getvalue(), "x"), shown)


def test_a_photograph_on_its_side_is_turned() -> None:
    stored = np.zeros((16, 32, 3), dtype=np.uint8)
    stored[:, :16] = 200
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    stream = io.BytesIO()
    Image.fromarray(stored).save(stream, "JPEG", exif=exif)
    found = pixels(stream.getvalue(), "x")
    assert found.shape == (32, 16, 3)
    assert found[:16].min() > 190
    assert found[16:].max() < 10


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF", "MPO"])
def test_a_file_of_several_frames_is_refused(kind: str) -> None:
    first, *others = (Image.new("RGB", (8, 8), (value,) * 3) for value in (0, 120, 240))
    stream = io.BytesIO()
    first.save(stream, kind, save_all=True, append_images=others)
    with pytest.raises(DataError, match=r"^a.any: must hold one image, got 3 frames; save each"):
        pixels(stream.getvalue(), "a.any")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP"])
def test_an_image_cut_short_is_refused(kind: str) -> None:
    noise = np.random.default_rng(0).integers(256, size=(32, 32, 3), dtype=np.uint8)
    content = encoded(Image.fromarray(noise), kind)
    with pytest.raises(DataError, match=r"a.any: .*truncated"):
        pixels(content[: len(content) // 2], "a.any")


@pytest.mark.parametrize(("size", "side"), [((96, 64), 32), ((64, 96), 32), ((48, 48), 8)])
def test_resizing_is_the_middle_of_the_resized_image(size: tuple[int, int], side: int) -> None:
    content = photo(3, size)
    with Image.open(io.BytesIO(content)) as image:
        factor = min(size) // side
        whole = image.resize((size[0] // factor, size[1] // factor), Image.Resampling.BILINEAR)
    left, top = (whole.width - side) // 2, (whole.height - side) // 2
    expected = np.asarray(whole.crop((left, top, left + side, top + side)))
    assert np.array_equal(pixels(content, "x", resize=side), expected)


def test_an_image_of_the_size_asked_for_stays_as_it_is() -> None:
    stored = np.random.default_rng(0).integers(256, size=(9, 12, 3), dtype=np.uint8)
    content = encoded(Image.fromarray(stored))
    assert np.array_equal(pixels(content, "x", resize=9), stored[:, 1:10])


def test_resizing_is_antialiased() -> None:
    board = (np.indices((64, 64)).sum(0) % 2 * 255).astype(np.uint8)
    found = pixels(encoded(Image.fromarray(board)), "x", resize=8)
    assert abs(found[1:-1, 1:-1].astype(int) - 127).max() <= 2


@pytest.mark.parametrize("size", [(1, 1), (1, 500), (20_000, 2)])
def test_images_of_any_shape_are_resized(size: tuple[int, int]) -> None:
    found = pixels(png(77, size), "x", resize=4)
    assert np.array_equal(found, np.full((4, 4, 3), 77))


def test_images_are_turned_before_they_are_cut() -> None:
    upright = pixels(photo(1, (60, 40)), "x", resize=20)
    turned = pixels(photo(1, (60, 40), orientation=6), "x", resize=20)
    # Pillow rounds to bytes between the two directions.
    assert abs(turned.astype(int) - np.rot90(upright, -1)).max() <= 1


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_every_format_is_resized_alike(kind: str) -> None:
    found = pixels(photo(5, (90, 60), kind), "x", resize=12, channels=3)
    plain = pixels(photo(5, (90, 60)), "x", resize=12)
    assert found.shape == (12, 12, 3)
    assert abs(found.astype(int) - plain).mean() < 8


def test_colours_become_grey_and_grey_gets_three_channels() -> None:
    assert pixels(png(50), "x", channels=1).tolist() == [[50] * 4] * 4
    assert pixels(png(50, mode="L"), "x", channels=3).tolist() == [[[50] * 3] * 4] * 4
