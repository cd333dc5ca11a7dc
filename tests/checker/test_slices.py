"""Slices of maps in the checker: their places by definition, and weights that fit none."""

import numpy as np
import pytest
from slicing import ARRANGED, mixing, slices

from unitmargin.checker.slices import CUTS, Slicing, slicing
from unitmargin.layers.slices import Arrangement

every = pytest.mark.parametrize(("arrangement", "channels"), ARRANGED.values(), ids=ARRANGED)


def cut(arrangement: Arrangement, channels: int) -> Slicing:
    layer = mixing(arrangement, channels)
    way, options = CUTS[layer.kind.removesuffix("_mixing")]
    own = {name: layer.configuration()[name] for name in options}
    return slicing(way, layer.weight.double().numpy(), list(arrangement.map_size), own)


@every
def test_slices_are_cut_and_joined_as_defined(arrangement: Arrangement, channels: int) -> None:
    found = cut(arrangement, channels)
    shape = (channels, *arrangement.map_size)
    x = np.arange(2.0 * found.entries).reshape(2, *shape)
    joined = found.joined(found.cut(x), 2)
    assert (found.shape, found.shapes(shape)) == (shape, [joined.shape[1:]])
    for number, flat in enumerate(joined.reshape(2, -1)):
        for _, inside, outside in slices(arrangement, channels):
            assert flat[outside].tolist() == x[number].ravel()[inside].tolist()


def test_a_matrix_has_its_own_slices() -> None:
    """By hand: groups of one channel of a map of 1 x 2 pixels, two maps."""
    way, _ = CUTS["group"]
    found = slicing(way, np.zeros((2, 2, 2)), [1, 2], {"size": 1})
    assert (found.shape, found.entries, found.served) == ((2, 1, 2), 4, 1)
    parts = found.cut(np.array([[[[1.0, 2]], [[3, 4]]], [[[5, 6]], [[7, 8]]]]))
    assert parts.tolist() == [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]


@pytest.mark.parametrize(
    ("name", "weight", "size", "own"),
    [
        ("position", (4, 4), [2, 1], {}),
        ("position", (0, 4, 4), [2, 1], {}),
        ("position", (3, 4, 4), [2, 1], {}),
        ("position", (1, 4, 4), [1, 2**40], {}),
        ("group", (2, 3, 3), [1, 2], {"size": 1}),
        ("window", (1, 4, 4), [3, 2], {"size": 2, "shift": 0}),
        ("window", (1, 4, 4), [2, 2], {"size": 2, "shift": 2}),
        ("window", (1, 3, 3), [2, 2], {"size": 2, "shift": 0}),
        ("shift", (1, 7, 7), [2, 2], {}),
    ],
)
def test_weights_that_fit_no_slices_are_refused(
    name: str, weight: tuple[int, ...], size: list[int], own: dict[str, int]
) -> None:
    with pytest.raises(ValueError, match="weight .* on slices of|in windows of|eighths of"):
        slicing(CUTS[name][0], np.zeros(weight), size, own)


def test_activations_of_another_shape_are_refused() -> None:
    found = slicing(CUTS["position"][0], np.zeros((2, 4, 4)), [2, 1], {})
    with pytest.raises(ValueError, match="slices of .* behind activations"):
        found.shapes((4, 1, 2))
