"""Plans of mixing networks: words are read, and maps follow them."""

import pytest
import torch

from unitmargin.layers.l2_pool import L2Pool
from unitmargin.layers.rearrangement import PixelUnshuffle, Widen
from unitmargin.layers.slices import Arrangement, Folds, Groups, Positions, Shifts, Windows
from unitmargin.models.plans import Word, default_plan, plan_layers, read_plan, read_word
from unitmargin.orthogonal.mixing import OrthogonalMixing
from unitmargin.orthogonal.reflection import OrthogonalReflection


@pytest.mark.parametrize("text", ["window 2 -1", "window 2.0", "fold x", "window " + "9" * 5000])
def test_numbers_of_a_plan_are_whole_and_short(text: str) -> None:
    with pytest.raises(
        ValueError, match="numbers of a plan must be whole, .*; correct them"
    ) as told:
        read_word(text)
    assert len(str(told.value)) < 300


def test_a_plan_is_read_word_by_word() -> None:
    plan = ["fold 4", "window 2 1", "shift", "position", "group 16", "group"]
    assert read_plan(plan) == [
        Word("fold", (4,)),
        Word("window", (2, 1)),
        Word("shift", ()),
        Word("position", ()),
        Word("group", (16,)),
        Word("group", ()),
    ]


@pytest.mark.parametrize(
    "text", ["", "windows 2", "fold 2 1 0", "shift 1", "group -2", "group x", "reflect pool"]
)
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="plan must be"):
        read_word(text)


def arrangements(plan: list[str], in_shape: tuple[int, int, int]) -> list[Arrangement]:
    with torch.device("meta"):
        layers, _ = plan_layers(plan, in_shape, 0.25)
    sliced = (OrthogonalMixing, OrthogonalReflection)
    return [layer.arrangement for layer in layers if isinstance(layer, sliced)]


def test_maps_shrink_with_folds_and_windows_overlap_by_half() -> None:
    plan = ["fold 2", "window 4", "window 4 3", "fold 2", "shift", "position", "group 2"]
    assert arrangements(plan, (1, 16, 8)) == [
        Folds((16, 8), 2, 0),
        Windows((8, 4), 4, 2),
        Windows((8, 4), 4, 3),
        Folds((8, 4), 2, 1),
        Shifts((4, 2)),
        Positions((4, 2)),
        Groups((4, 2), 2),
    ]


def test_words_become_layers_of_their_kind() -> None:
    plan = ["unshuffle", "window 1", "widen 3", "reflect window", "pool", "reflect group 4"]
    layers, numbers = plan_layers(plan, (1, 16, 8), 0.5)
    unshuffle, first, *others = layers
    assert isinstance(unshuffle, PixelUnshuffle)
    assert isinstance(first, OrthogonalMixing)
    assert first.absolute == 2
    assert [type(layer) for layer in others] == [
        Widen, OrthogonalReflection, L2Pool, OrthogonalReflection,
    ]  # fmt: skip
    assert numbers == 12 * 4 * 2


def test_a_word_that_does_not_fit_its_map_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 3 on both sides, got 4 x 4"):
        plan_layers(["fold 2", "window 3"], (1, 8, 8), 0.25)
    for word in ("pool 3", "unshuffle 3", "pool 16", "pool 0"):
        with pytest.raises(ValueError, match=f"{word} of a plan must divide the sides of its map"):
            plan_layers([word], (1, 8, 8), 0.25)


def test_a_plan_is_a_list_of_words() -> None:
    with pytest.raises(TypeError, match="plan must be a list such as"):
        read_plan("fold 2")


@pytest.mark.parametrize(
    ("in_shape", "expected"),
    [
        ((3, 32, 32), ["fold 4", *["window 2"] * 4, "fold 2", *["window 1", "group 16"] * 4]),
        ((3, 64, 64), ["fold 4", *["window 2"] * 4, "fold 2", *["window 1", "group 4"] * 4]),
        (
            (3, 128, 128),
            [
                *["fold 4", *["window 2"] * 4, "fold 2", "shift", "shift", "pool 2"],
                *["window 1", "group 4"] * 4,
            ],
        ),
        ((3, 75, 75), ["fold 3", "shift", "shift", "pool 5", *["window 1", "group 9"] * 4]),
        ((3, 11, 11), ["window 1", "group 1"] * 4),
        ((1, 7, 7), ["window 1", "group 1"] * 4),
        ((2, 1, 9), ["window 1", "group 2"] * 4),
        ((1, 8, 8), ["fold 2", *["window 1", "group 4"] * 4]),
        ((3, 7, 5), ["window 1", "group 3"] * 4),
        ((1, 1, 1), ["window 1", "group 1"] * 4),
    ],
)
def test_the_default_folds_to_a_small_map(
    in_shape: tuple[int, int, int], expected: list[str]
) -> None:
    assert default_plan(in_shape) == expected


def products(in_shape: tuple[int, int, int]) -> int:
    """Multiplications of an image: every slice meets a matrix of its own side."""
    with torch.device("meta"):
        layers, _ = plan_layers(default_plan(in_shape), in_shape, 0.25)
    mixing = [layer for layer in layers if isinstance(layer, OrthogonalMixing)]
    sides = [(layer.arrangement, *layer.raw.shape[:2]) for layer in mixing]
    return sum(one.channels(count, n) * one.pixels * n for one, count, n in sides)


@pytest.mark.parametrize("side", [64, 96, 128, 224, 256, 512])
def test_an_entry_of_the_default_costs_no_more_in_a_large_image(side: int) -> None:
    assert products((3, side, side)) <= (side / 32) ** 2 * products((3, 32, 32))


def test_the_last_map_of_the_default_is_small() -> None:
    for side in (32, 50, 64, 100, 128, 200, 224, 256, 512):
        with torch.device("meta"):
            _, features = plan_layers(default_plan((3, side, side)), (3, side, side), 0.25)
        assert 1_000 <= features <= 12_288, side


@pytest.mark.parametrize("in_shape", [(3, 227, 227), (3, 64, 63)])
def test_sides_that_no_default_divides_are_refused(in_shape: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="common divisors .*; resize the images"):
        default_plan(in_shape)


def test_matrices_that_nothing_holds_are_not_made() -> None:
    message = "window of a plan must take slices of at most 16384 numbers, got 3999996 of 3999996"
    with pytest.raises(ValueError, match=message):
        plan_layers(["fold 2", "widen 999999", "window 1"], (1, 8, 8), 0.5)
    # As small as they are wide.
    assert plan_layers(["fold 2", "widen 999999", "group 4"], (1, 4, 4), 0.5)[1] == 16 * 999999
