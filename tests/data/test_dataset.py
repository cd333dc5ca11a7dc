"""Data sets: where the entries of inputs like theirs lie."""

import pytest
import torch

from unitmargin.data.dataset import joint_domain
from unitmargin.data.image_options import ImageOptions
from unitmargin.data.samples import Samples
from unitmargin.data.tar_shards import TarShards

UNIT = (0.0, 1.0)


def spanning(low: float, high: float, *shape: int) -> Samples:
    """An input of that shape at each end."""
    shape = shape or (3,)
    inputs = torch.stack([torch.full(shape, low), torch.full(shape, high)])
    return Samples(inputs, torch.tensor([0, 1]))


@pytest.mark.parametrize(
    ("train", "test", "domain"),
    [
        (UNIT, (0.25, 0.75), UNIT),
        (UNIT, (-0.25, 1.25), (-1.75, 2.75)),
        (UNIT, (0.5, 1.25), (-1.25, 2.5)),
        (UNIT, (0.0, 100.0), (-100.0, 200.0)),
        ((-1.0, 1.0), (-3.0, 3.0), (-3.0, 3.0)),  # that of the training samples holds them
        ((-1.0, 1.0), (0.0, 4.0), (-6.0, 9.0)),
        ((5.0, 5.0), (5.0, 11.0), (-1.0, 17.0)),
    ],
)
def test_a_domain_holds_the_test_samples(
    train: tuple[float, float], test: tuple[float, float], domain: tuple[float, float]
) -> None:
    found = joint_domain(spanning(*train), spanning(*test))
    assert found == domain
    assert found[0] <= test[0] < test[1] <= found[1]


def test_without_test_samples_it_is_that_of_the_training_samples() -> None:
    train = spanning(-1.0, 1.0)
    assert joint_domain(train, None) == train.domain


def test_pixels_stay_pixels() -> None:
    stored = torch.tensor([[[[0]]], [[[9]]]], dtype=torch.uint8)
    pixels = Samples(stored, torch.tensor([0, 1]), scale=255.0)
    assert joint_domain(pixels, pixels) == UNIT
    shards = TarShards((), torch.tensor([0, 1]), ("a", "b"), (1, 1, 1), "", ImageOptions())
    assert joint_domain(shards, pixels) == UNIT


def test_test_images_in_other_units_are_refused() -> None:
    train = spanning(0.0, 1.0, 1, 2, 2)
    assert joint_domain(train, spanning(-0.25, 1.25, 1, 2, 2)) == (-1.75, 2.75)
    message = r"test images must be in the units .* \[0.0, 1.0\], got entries from 0 to 255; scale"
    with pytest.raises(ValueError, match=message):
        joint_domain(train, spanning(0.0, 255.0, 1, 2, 2))
    coloured = spanning(-1.0, 1.0, 1, 2, 2)  # around their mean
    assert joint_domain(coloured, spanning(0.0, 4.0, 1, 2, 2)) == (-6.0, 9.0)
