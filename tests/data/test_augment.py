"""Random crops and flips: each result is a window of the padded image, drawn evenly."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import pad

from unitmargin.data.augment import random_crop_flip


def candidates(image: torch.Tensor, padding: int, flip: bool) -> list[torch.Tensor]:
    """Every crop of the padded image and, with `flip`, its mirror image."""
    _, height, width = image.shape
    padded = pad(image, (padding,) * 4)
    places = range(2 * padding + 1)
    crops = [padded[:, y : y + height, x : x + width] for y in places for x in places]
    return crops + ([crop.flip(2) for crop in crops] if flip else [])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    shape=st.tuples(*(st.integers(1, top) for top in (4, 3, 5, 5))),
    padding=st.integers(0, 3),
    flip=st.booleans(),
    dtype=st.sampled_from([torch.uint8, torch.float32]),
    seed=st.integers(0, 2**32),
)
def test_every_output_is_a_crop_or_flip_of_the_padded_input(
    shape: tuple[int, int, int, int], padding: int, flip: bool, dtype: torch.dtype, seed: int
) -> None:
    size = shape[0] * shape[1] * shape[2] * shape[3]
    # All values differ within an image and none is 0, so that a wrong crop cannot pass.
    images = (torch.arange(size).reshape(shape) % 255 + 1).to(dtype)
    result = random_crop_flip(images, padding, flip, torch.Generator().manual_seed(seed))
    assert result.dtype == dtype
    assert result.shape == images.shape
    for image, found in zip(images, result, strict=True):
        assert any(torch.equal(found, crop) for crop in candidates(image, padding, flip))


def test_every_crop_and_flip_occurs() -> None:
    image = torch.arange(1.0, 5.0).reshape(1, 1, 2, 2)
    result = random_crop_flip(image.expand(2000, 1, 2, 2), 1, True, torch.Generator())
    assert len(torch.unique(result.flatten(1), dim=0)) == 18


def test_only_the_generator_decides() -> None:
    images = torch.rand(16, 3, 8, 8)
    torch.manual_seed(0)
    first = random_crop_flip(images, 2, True, torch.Generator().manual_seed(5))
    torch.manual_seed(1)
    before = torch.get_rng_state()
    again = random_crop_flip(images, 2, True, torch.Generator().manual_seed(5))
    assert torch.equal(first, again)
    assert torch.equal(before, torch.get_rng_state())
    assert not torch.equal(
        first, random_crop_flip(images, 2, True, torch.Generator().manual_seed(6))
    )


def test_bytes_and_floats_move_alike() -> None:
    images = torch.randint(256, (8, 3, 6, 5), dtype=torch.uint8)
    as_bytes = random_crop_flip(images, 2, True, torch.Generator().manual_seed(1))
    as_floats = random_crop_flip(images.float(), 2, True, torch.Generator().manual_seed(1))
    assert torch.equal(as_bytes.float(), as_floats)


def test_the_input_is_left_alone() -> None:
    images = torch.rand(4, 1, 4, 4)
    kept = images.clone()
    result = random_crop_flip(images, 0, False, torch.Generator())
    result.zero_()
    assert torch.equal(images, kept)


def test_refuses_other_shapes_and_negative_padding() -> None:
    with pytest.raises(ValueError, match=r"images must have shape .*got \(4, 2\)"):
        random_crop_flip(torch.zeros(4, 2), 1, True, torch.Generator())
    with pytest.raises(ValueError, match="padding must be >= 0, got -1"):
        random_crop_flip(torch.zeros(1, 1, 2, 2), -1, True, torch.Generator())


def test_reflected_borders_hold_the_image_mirrored() -> None:
    images = torch.arange(1.0, 26.0).reshape(1, 1, 5, 5)
    padded = torch.nn.functional.pad(images, (2, 2, 2, 2), "reflect")
    windows = {
        tuple(padded[0, 0, row : row + 5, column : column + 5].flatten().tolist())
        for row in range(5)
        for column in range(5)
    }
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        cropped = random_crop_flip(images, 2, False, generator, "reflect")
        assert tuple(cropped.flatten().tolist()) in windows


def test_an_unknown_padding_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="padding must be one of zeros, reflect, got 'wrap'"):
        random_crop_flip(torch.zeros(1, 1, 4, 4), 1, False, torch.Generator(), "wrap")


def test_a_mask_says_which_images_are_mirrored() -> None:
    images = torch.arange(12.0).reshape(3, 1, 2, 2)
    mask = torch.tensor([True, False, True])
    result = random_crop_flip(images, 0, mask, torch.Generator())
    assert torch.equal(result[mask], images[mask].flip(3))
    assert torch.equal(result[1], images[1])
