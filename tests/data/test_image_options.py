"""Options of images: judged when they are made."""

import pytest

from unitmargin.data import load_dataset
from unitmargin.data.image_options import ImageOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resize": 0}, "resize must be greater than 0, got 0"),
        ({"resize": 5000}, "resize must be less than or equal to 4096, got 5000"),
        ({"resize": 3.5}, "resize must be a valid integer, got 3.5"),
        ({"channels": 2}, "channels must be 1 or 3, got 2"),
        ({"test_share": 0.0}, "test_share must be greater than 0, got 0.0"),
        ({"test_share": 1}, "test_share must be less than 1, got 1"),
        ({"split_seed": -1}, "split_seed must be greater than or equal to 0, got -1"),
        ({"size": 3}, "size is no option"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ImageOptions(**options)
    with pytest.raises(ValueError, match=message):
        load_dataset("images", "photos", **options)


@pytest.mark.parametrize("name", ["digits", "moons", "npz", "cifar10"])
def test_other_data_sets_take_no_options_of_images(name: str) -> None:
    path = "data.npz" if name == "npz" else None
    with pytest.raises(ValueError, match=f"resize must be left out for data set '{name}', .* 8;"):
        load_dataset(name, path, resize=8)


def test_what_is_left_out_is_not_given() -> None:
    options = ImageOptions(resize=8, split_seed=0)
    assert options.given() == {"resize": 8, "split_seed": 0}
    assert options.images() == {"resize": 8}
