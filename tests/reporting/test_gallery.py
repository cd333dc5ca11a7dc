"""The gallery: images of samples, their closest points and the amplified difference."""

import base64
import io

import pytest
import torch
from PIL import Image

from unitmargin.certificates.exhibits import Exhibit
from unitmargin.reporting.gallery import (
    amplification,
    difference_source,
    image_source,
    shown_range,
)


def opened(source: str) -> Image.Image:
    kind, _, content = source.partition(",")
    assert kind == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


def exhibit(original: torch.Tensor, adversarial: torch.Tensor) -> Exhibit:
    return Exhibit(
        index=0,
        why="wrong",
        label="a",
        predicted="b",
        other="c",
        radius=0.1,
        distance=0.2,
        original=original.double(),
        adversarial=adversarial.double(),
    )


@pytest.mark.parametrize(
    ("largest", "factor"),
    [(0.0, 1), (2.0, 1), (0.4, 1), (0.2, 2), (0.09, 5), (0.04, 10), (9e-4, 500), (1e-20, 10**15)],
)
def test_amplification_is_round_and_keeps_the_difference_in_range(
    largest: float, factor: int
) -> None:
    black = torch.zeros(1, 2, 2)
    moved = black.clone()
    moved[0, 0, 0] = largest
    shown = exhibit(black, moved)
    assert amplification(shown) == factor
    pixels = opened(difference_source(shown))
    assert pixels.getpixel((1, 1)) == 128
    expected = min(255.0 * (0.5 + factor * largest), 255.0)
    assert pixels.getpixel((0, 0)) == pytest.approx(expected, abs=0.6)


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB")])
def test_png_holds_the_pixels_clipped(channels: int, mode: str) -> None:
    pixels = torch.rand(channels, 5, 4) * 1.4 - 0.2
    image = opened(image_source(pixels))
    assert (image.mode, image.size) == (mode, (4, 5))
    expected = (pixels.clamp(0, 1) * 255).round().to(torch.uint8).movedim(0, -1)
    assert image.tobytes() == expected.contiguous().numpy().tobytes()


@pytest.mark.parametrize(
    ("input_range", "ends"),
    [
        ((0.0, 1.0), (0.0, 1.0)),
        ((0.2, 0.7), (0.0, 1.0)),
        ((0.0, 16.0), (0.0, 16.0)),
        ((-2.5, 2.0), (-2.5, 2.0)),
        ((7.0, 7.0), (7.0, 8.0)),
    ],
)
def test_what_is_black_and_white(
    input_range: tuple[float, float], ends: tuple[float, float]
) -> None:
    assert shown_range(list(input_range)) == ends


def test_images_of_other_units_look_like_those_of_pixels() -> None:
    pixels = torch.rand(1, 3, 3).double()
    moved = pixels + 0.03 * torch.rand(1, 3, 3)
    ends = (-100.0, 300.0)
    shown, wide = exhibit(pixels, moved), exhibit(400.0 * pixels - 100.0, 400.0 * moved - 100.0)
    assert image_source(wide.original, ends) == image_source(pixels)
    assert amplification(wide, ends) == amplification(shown) >= 10
    assert difference_source(wide, ends) == difference_source(shown)
