"""The gallery: which samples are shown, and images of what they are."""

import base64
import io

import pytest
import torch
from PIL import Image

from unitmargin.data import Samples
from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.reporting.gallery import (
    Exhibit,
    amplification,
    choose_exhibits,
    difference_source,
    image_source,
    is_image,
    make_exhibits,
)


def opened(source: str) -> Image.Image:
    kind, _, content = source.partition(",")
    assert kind == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


def exhibit(original: torch.Tensor, adversarial: torch.Tensor) -> Exhibit:
    return Exhibit(0, "wrong", "a", "b", "c", 0.1, 0.2, original.double(), adversarial.double())


def test_choice_falls_from_largest_radius_and_ends_with_the_surest_mistake() -> None:
    radius = torch.linspace(0.0, 1.0, 101)
    right = torch.ones(101, dtype=torch.bool)
    right[[10, 90]] = False
    chosen = choose_exhibits(radius, right)
    assert [index for index, _ in chosen[:-1]] == sorted(
        (index for index, _ in chosen[:-1]), reverse=True
    )
    assert chosen[0] == (100, "large radius")
    assert chosen[-2] == (0, "small radius")
    assert chosen[-1] == (90, "wrong")
    assert len(chosen) == 8


@pytest.mark.parametrize(
    ("right", "expected"),
    [([True], [(0, "large radius")]), ([False], [(0, "wrong")])],
)
def test_choice_of_one_sample(right: list[bool], expected: list[tuple[int, str]]) -> None:
    assert choose_exhibits(torch.tensor([0.5]), torch.tensor(right)) == expected


def test_a_prediction_without_a_claim_is_no_exhibit() -> None:
    assert choose_exhibits(torch.tensor([0.0]), torch.tensor([False])) == []


def test_exhibits_lie_on_the_boundary_of_half_planes() -> None:
    weight = torch.tensor([[-0.5, 0.0], [0.5, 0.0]])
    network = FrozenNetwork([Dense(weight, torch.zeros(2))], (2,), ("left", "right"))
    samples = Samples(torch.tensor([[-1.0, 0.5], [0.25, 0.0]]), torch.tensor([0, 0]))
    first, second = make_exhibits(
        network, samples, torch.tensor([1.0, 0.25]), torch.tensor([True, False])
    )
    assert (first.label, first.predicted, first.other) == ("left", "left", "right")
    assert (second.label, second.predicted, second.other) == ("left", "right", "left")
    assert first.distance == pytest.approx(1.0)
    assert second.distance == pytest.approx(0.25)
    torch.testing.assert_close(first.adversarial, torch.tensor([0.0, 0.5]).double())


@pytest.mark.parametrize(
    ("largest", "factor"),
    [(0.0, 1), (2.0, 1), (0.4, 1), (0.2, 2), (0.09, 5), (0.04, 10), (9e-4, 500)],
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


def test_only_grey_and_colour_maps_are_images() -> None:
    assert is_image((1, 8, 8))
    assert is_image((3, 32, 32))
    assert not is_image((12, 16, 16))
    assert not is_image((2,))
