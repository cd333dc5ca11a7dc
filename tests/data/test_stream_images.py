"""Images as new inputs: labels by folder, grey and colour, and layouts that are refused."""

import io
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from data.tiny import photo, png, tar_bytes, write_folder, zip_bytes
from PIL import Image

from unitmargin.data.files import DataError
from unitmargin.data.image_options import ImageOptions
from unitmargin.data.pixels import pixels
from unitmargin.data.stream_images import read_images
from unitmargin.data.stream_items import Item, Wanted

COLOUR, GREY = Wanted((3, 4, 4), ("cat", "dog")), Wanted((1, 4, 4), ("cat", "dog"))

FILES = {
    "dog/2.png": png(20), "dog/10.png": png(30), "cat/é ü.png": png(40), "bird/1.png": png(50),
}  # fmt: skip


def summary(items: list[Item]) -> dict[str, tuple[int, int]]:
    """The byte that an image is made of, and its label, by its source."""
    return {item.source: (round(255 * float(item.numbers.max())), item.label) for item in items}


def read(path: Path, files: Mapping[str, bytes], wanted: Wanted = COLOUR) -> list[Item]:
    return list(read_images(write_folder(path, files), wanted))


def test_folders_are_classes_where_the_model_has_their_name(tmp_path: Path) -> None:
    items = read(tmp_path, FILES)
    assert summary(items) == {
        "bird/1.png": (50, -1), "cat/é ü.png": (40, 0), "dog/10.png": (30, 1), "dog/2.png": (20, 1),
    }  # fmt: skip
    assert [item.source for item in items] == sorted(FILES)
    assert {item.numbers.shape for item in items} == {(3, 4, 4)}
    assert items[0].numbers.max() == np.float32(50) / np.float32(255)


def test_an_archive_may_have_a_folder_around(tmp_path: Path) -> None:
    for top in ("", "new/"):
        path = tmp_path / "new.tar"
        path.write_bytes(tar_bytes({top + name: image for name, image in FILES.items()}))
        found = summary(list(read_images(path, COLOUR)))
        assert list(found) == [top + name for name in FILES]  # in its own order
        assert [label for _, label in found.values()] == [1, 1, 0, -1]


def test_flat_folders_and_single_images_have_no_labels(tmp_path: Path) -> None:
    assert summary(read(tmp_path, {"b.png": png(2), "a.png": png(1)})) == {
        "a.png": (1, -1), "b.png": (2, -1),
    }  # fmt: skip
    assert summary(list(read_images(tmp_path / "b.png", COLOUR))) == {"b.png": (2, -1)}


def test_hidden_files_are_left_out(tmp_path: Path) -> None:
    assert len(read(tmp_path, {"a.png": png(), ".a.png": b"x", ".git/a.png": b"x"})) == 1


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1"])
def test_images_of_every_mode_serve_a_network_of_colours(tmp_path: Path, mode: str) -> None:
    image = Image.new("RGB", (4, 4), (255, 255, 255)).convert(mode)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    (item,) = read(tmp_path, {"a.png": stream.getvalue()})
    assert np.array_equal(item.numbers, np.ones((3, 4, 4), np.float32))


def test_channels_come_first(tmp_path: Path) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (4, 4), (255, 0, 51)).save(stream, "PNG")
    (item,) = read(tmp_path, {"a.png": stream.getvalue()})
    assert item.numbers[:, 2, 3].tolist() == [1.0, 0.0, np.float32(0.2)]


def test_a_network_of_grey_images_takes_grey_ones_alone(tmp_path: Path) -> None:
    (item,) = read(tmp_path / "grey", {"a.png": png(51, mode="L")}, GREY)
    assert np.array_equal(item.numbers, np.full((1, 4, 4), 0.2, np.float32))
    for mode in ("RGB", "RGBA", "P"):
        content = png(255, mode=mode)
        with pytest.raises(DataError, match=r"a.png: must be an 8-bit grey image, .* convert it"):
            read(tmp_path / mode, {"a.png": content}, GREY)


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_a_name_that_is_no_text_is_written_out(tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/\xff.png"
    try:
        Path(os.fsdecode(file)).write_bytes(png(7))
    except OSError:
        pytest.skip("the file system takes text alone")
    assert summary(list(read_images(tmp_path, COLOUR))) == {"\\udcff.png": (7, -1)}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.png": png(size=(5, 4))}, r"a.png: must have the size .* 4 x 4, got 4 x 5 \(height"),
        ({"a.png": png(), "b.txt": b"x"}, r"b.txt: must be a whole image"),
        ({"a.png": png()[:40]}, r"a.png: must be a whole image"),
        ({"a.png": png(100, mode="RGBA")}, r"a.png: must have no transparent pixels"),
        ({"x/cat/1.png": png()}, r"must lie as IMAGE or CLASS/IMAGE, got x/cat; name the folder"),
        ({"a/b/c/d/e/f.png": png()}, r"must lie as IMAGE or CLASS/IMAGE, got a/b; name"),
    ],
)
def test_what_is_no_image_of_the_network_is_named(
    tmp_path: Path, files: dict[str, bytes], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, files)


@pytest.mark.parametrize(
    "files", [{"a/b/c/1.png": png()}, {"a/cat/1.png": png(), "b/cat/1.png": png()}]
)
def test_archives_of_more_folders_are_refused(tmp_path: Path, files: dict[str, bytes]) -> None:
    path = tmp_path / "new.tar"
    path.write_bytes(tar_bytes(files))
    with pytest.raises(DataError, match="must lie as IMAGE or CLASS/IMAGE, got "):
        list(read_images(path, COLOUR))


@pytest.mark.parametrize("in_shape", [(4,), (2, 4, 4), (1, 3, 4, 4)])
def test_a_network_of_other_inputs_takes_no_images(
    tmp_path: Path, in_shape: tuple[int, ...]
) -> None:
    with pytest.raises(DataError, match="images must have one channel or three, got a network"):
        read(tmp_path, {"a.png": png()}, Wanted(in_shape, ("cat", "dog")))


def test_images_are_resized_as_in_the_training(tmp_path: Path) -> None:
    images = {"a.png": photo(1, (9, 7)), "b.png": photo(2, (4, 30), orientation=6)}
    items = read(tmp_path, images, Wanted((3, 4, 4), ("cat", "dog"), ImageOptions(resize=4)))
    for item, (name, content) in zip(items, images.items(), strict=True):
        expected = pixels(content, name, 4).transpose(2, 0, 1) / np.float32(255)
        assert np.array_equal(item.numbers, expected)


def test_resized_images_are_repeated_where_the_training_did(tmp_path: Path) -> None:
    wanted = Wanted((3, 8, 8), ("cat", "dog"), ImageOptions(resize=4))
    (item,) = read(tmp_path, {"a.png": photo(1, (9, 7))}, wanted)
    assert np.array_equal(item.numbers[:, ::2, 1::2], item.numbers[:, 1::2, ::2])


def test_colours_become_grey_where_the_training_did(tmp_path: Path) -> None:
    wanted = GREY._replace(images=ImageOptions(channels=1))
    (item,) = read(tmp_path, {"a.png": png(51)}, wanted)
    assert np.array_equal(item.numbers, np.full((1, 4, 4), 0.2, np.float32))


def test_a_zip_archive_is_read_as_a_tar_archive_is(tmp_path: Path) -> None:
    path = tmp_path / "new.zip"
    path.write_bytes(zip_bytes({f"new/{name}": image for name, image in FILES.items()}))
    assert [label for _, label in summary(list(read_images(path, COLOUR))).values()] == [
        1,
        1,
        0,
        -1,
    ]
