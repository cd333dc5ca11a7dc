"""Decoding in one process and in several: the same pixels in the same order."""

import multiprocessing
from collections.abc import Iterator

import numpy as np
import pytest
from data.tiny import png

from unitmargin.data import decoding
from unitmargin.data.decoding import decode
from unitmargin.data.files import DataError

IMAGES = [(f"{value}.png", png(value, (5, 4))) for value in range(40)]


def values(images: list[tuple[str, bytes]], **how: int) -> list[int]:
    return [int(image[0, 0, 0]) for image in decode(iter(images), **how)]


def test_images_come_in_their_order_whoever_decodes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    others = multiprocessing.active_children()  # of tests that ran before
    monkeypatch.setattr(decoding, "CHUNK", 300)  # a few images a task
    assert values(IMAGES) == list(range(40))
    damaged = [*IMAGES[:30], ("broken.png", b"x"), *IMAGES[30:]]
    images = decode(iter(damaged), processes=2, alone=500)
    assert [int(next(images)[0, 0, 0]) for _ in range(20)] == list(range(20))
    with pytest.raises(DataError, match=r"^broken.png: must be a whole image"):
        list(images)
    assert set(multiprocessing.active_children()) <= set(others)


def test_small_sets_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "ProcessPoolExecutor", None)  # whoever calls it fails
    assert values(IMAGES, processes=8) == list(range(40))
    assert values(IMAGES, processes=1, alone=0) == list(range(40))


def test_images_are_asked_for_as_they_are_needed() -> None:
    asked = []

    def images() -> Iterator[tuple[str, bytes]]:
        for name, content in IMAGES:
            asked.append(name)
            yield name, content

    assert next(decode(images())).shape == (4, 5, 3)
    assert len(asked) == 1


def test_every_image_is_resized_alike() -> None:
    shapes = {image.shape for image in decode(iter(IMAGES), resize=3, channels=1)}
    assert shapes == {(3, 3)}
    assert next(decode(iter(IMAGES[7:]), channels=1)).tolist() == np.full((4, 5), 7).tolist()
