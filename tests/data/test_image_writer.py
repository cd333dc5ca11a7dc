"""Decoded images on their way into the cache folder."""

from pathlib import Path

import numpy as np
import pytest

from unitmargin.data import image_writer
from unitmargin.data.image_writer import ImageWriter

GREY = np.arange(6, dtype=np.uint8).reshape(2, 3)
COLOUR = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
HASHES = [bytes([number]) * 32 for number in range(1, 5)]


def written(folder: Path) -> np.ndarray:
    return np.load(folder / "x.npy")


def test_grey_images_keep_one_channel(tmp_path: Path) -> None:
    with ImageWriter(tmp_path, 2) as writer:
        assert writer.size is None
        for place in (1, 0):
            writer.put(place, HASHES[place], GREY + place)
        assert writer.size == (2, 3)
    assert np.array_equal(written(tmp_path), np.stack([GREY, GREY + 1])[:, None])
    assert [row.tobytes() for row in np.load(tmp_path / "sha256.npy")] == HASHES[:2]


@pytest.mark.parametrize("block", [1, 2**26])
@pytest.mark.parametrize("first", [0, 1, 3])
def test_with_one_coloured_image_all_have_three_channels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, first: int
) -> None:
    monkeypatch.setattr(image_writer, "BLOCK", block)
    with ImageWriter(tmp_path, 4) as writer:
        for place in range(4):
            writer.put(place, HASHES[place], COLOUR if place == first else GREY + place)
    for place, image in enumerate(written(tmp_path)):
        grey = np.repeat((GREY + place)[None], 3, axis=0)
        assert np.array_equal(image, COLOUR.transpose(2, 0, 1) if place == first else grey)
    assert not (tmp_path / "x.colour").exists()


def begin(folder: Path) -> None:
    with ImageWriter(folder, 3) as writer:
        writer.put(1, HASHES[1], GREY)
        raise KeyboardInterrupt


def test_an_interrupted_writer_is_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path)
    with ImageWriter(tmp_path, 3) as writer:
        assert [writer.has(place, HASHES[place]) for place in range(3)] == [False, True, False]
        assert not writer.has(1, HASHES[2])
        writer.put(0, HASHES[0], COLOUR)
        writer.put(2, HASHES[2], COLOUR)
    assert written(tmp_path).shape == (3, 3, 2, 3)
    assert np.array_equal(written(tmp_path)[1], np.repeat(GREY[None], 3, axis=0))


def test_what_is_about_to_be_replaced_is_not_noted(tmp_path: Path) -> None:
    with ImageWriter(tmp_path, 1) as writer:
        writer.put(0, b"a" * 32, np.zeros((2, 2), np.uint8))
        writer.forget(0)
        writer.note()
        assert not writer.has(0, b"a" * 32)


def test_what_is_not_noted_is_not_done(tmp_path: Path) -> None:
    """As after a power cut between an image and its note."""
    with ImageWriter(tmp_path, 2) as writer:
        writer.put(0, HASHES[0], GREY)
        with ImageWriter(tmp_path, 2) as other:
            assert not other.has(0, HASHES[0])


def test_what_was_begun_for_another_number_of_images_is_not_gone_on_with(tmp_path: Path) -> None:
    with ImageWriter(tmp_path, 2) as writer:
        writer.put(0, HASHES[0], GREY)
    with ImageWriter(tmp_path, 3) as writer:
        assert not writer.has(0, HASHES[0])
        writer.put(2, HASHES[2], GREY)
    assert written(tmp_path).shape == (3, 1, 2, 3)
    assert not written(tmp_path)[:2].any()
