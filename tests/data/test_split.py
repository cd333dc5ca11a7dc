"""A split that is drawn: by class, by content, and found again."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.data.files import DataError
from unitmargin.data.split import Split, SplitImage, draw_split, find_split

HERE = Path("photos")


def drawn(labels: list[str], contents: list[str], share: float = 0.2, seed: int = 0) -> set[str]:
    tested = draw_split(labels, contents, share, seed, HERE)
    return {content for content, test in zip(contents, tested, strict=True) if test}


@given(
    counts=st.lists(st.integers(2, 30), min_size=1, max_size=4),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 2**40),
)
def test_each_class_has_its_share_on_both_sides(counts: list[int], share: float, seed: int) -> None:
    labels = list(itertools.chain.from_iterable([str(n)] * c for n, c in enumerate(counts)))
    contents = [f"{label}-{place}" for place, label in enumerate(labels)]
    tested = draw_split(labels, contents, share, seed, HERE)
    for number, count in enumerate(counts):
        own = int(tested[np.array(labels) == str(number)].sum())
        assert 1 <= own <= count - 1
        assert own in (1, count - 1) or abs(own - share * count) <= 0.5


@given(st.randoms(use_true_random=False), st.integers(0, 5))
def test_the_order_of_the_files_decides_nothing(random: object, seed: int) -> None:
    samples = [(label, f"{label}{n}") for label in "ab" for n in range(9)]
    expected = drawn(*map(list, zip(*samples, strict=True)), seed=seed)
    random.shuffle(samples)  # type: ignore[attr-defined]
    assert drawn(*map(list, zip(*samples, strict=True)), seed=seed) == expected


def test_another_seed_is_another_split_of_the_same_size() -> None:
    labels, contents = ["a"] * 40, [str(n) for n in range(40)]
    splits = [drawn(labels, contents, seed=seed) for seed in range(5)]
    assert {len(split) for split in splits} == {8}
    assert len({frozenset(split) for split in splits}) == 5


def test_images_of_one_content_are_on_one_side() -> None:
    labels, contents = ["a"] * 12, ["same"] * 6 + [str(n) for n in range(6)]
    for seed in range(8):
        tested = draw_split(labels, contents, 0.5, seed, HERE)
        assert len(set(tested[:6].tolist())) == 1


@pytest.mark.parametrize("contents", [["1", "2", "3"], ["1", "2", "3", "3"]])
def test_a_class_of_one_image_is_refused(contents: list[str]) -> None:
    labels = ["many", "many", *["few"] * (len(contents) - 2)]
    with pytest.raises(DataError, match="photos: every class must hold two .* got one in few;"):
        draw_split(labels, contents, 0.2, 0, HERE)


def stored(*images: tuple[str, str]) -> list[SplitImage]:
    return [SplitImage(label=label, file="x.png", sha256=sha256) for label, sha256 in images]


def test_a_split_is_found_whatever_was_added() -> None:
    split = Split(classes=["a"], train=stored(("a", "2"), ("a", "1")), test=stored(("a", "3")))
    labels, contents = ["b", "a", "a", "a", "a"], ["1", "0", "3", "1", "2"]
    assert find_split(split, labels, contents, HERE) == ([4, 3], [2])


def test_an_image_that_is_gone_is_named() -> None:
    split = Split(classes=["a"], train=stored(("a", "1")), test=stored(("a", "3")))
    with pytest.raises(DataError, match=r"photos: .* got no a/x.png with the content .*; put it"):
        find_split(split, ["a", "b"], ["1", "3"], HERE)
