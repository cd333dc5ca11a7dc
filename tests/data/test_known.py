"""Images that lie beside those of a split: of any kind, and of no account."""

import hashlib
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
import torch
from data.hub import hub_file
from data.tiny import kept, photo, png, write_folder, zip_bytes

import unitmargin.data.pixels
from unitmargin.data.dataset import Dataset
from unitmargin.data.files import DataError
from unitmargin.data.images import images
from unitmargin.data.known import known_images
from unitmargin.data.layout import Layout, Place
from unitmargin.data.split import Split, SplitImage

GREY = {
    f"{label}/{n}.png": png(n + 9 * (label == "b"), mode="L") for label in "ab" for n in range(6)
}

OTHERS = {
    "a colour": {"a/new.png": photo(1, (4, 4))},
    "another size": {"b/new.png": png(7, (9, 8))},
    "no image": {"a/new.png": b"no image"},
    "a class": {"c/1.png": photo(1, (9, 9)), "c/2.png": png(3, (2, 2))},
    "all at once": {"a/new.png": png(7, (9, 8)), "b/new.png": b"", "c/1.png": photo(1, (3, 3))},
}


def laid(place: Path, files: dict[str, bytes], kind: str) -> Path:
    if kind == "folder":
        return write_folder(place / "photos", files)
    if kind == "zip":
        (place / "photos.zip").write_bytes(zip_bytes(files))
        return place / "photos.zip"
    labels = [name.split("/")[0] for name in files]
    return hub_file(place / "photos.parquet", [*files.values()], labels)


def require_same(found: Dataset, truth: Dataset) -> None:
    assert found.classes == truth.classes
    assert found.split == truth.split
    for mine, other in ((found.train, truth.train), (found.test, truth.test)):
        assert mine.sha256 == other.sha256
        assert torch.equal(mine.batch(slice(0, 99))[0], other.batch(slice(0, 99))[0])


@pytest.mark.parametrize("kind", ["folder", "zip", "parquet"])
@pytest.mark.parametrize("others", OTHERS)
def test_images_that_a_split_does_not_know_change_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, others: str, kind: str
) -> None:
    before = images(laid(tmp_path, GREY, kind))
    assert before.in_shape == (1, 4, 4)
    path = laid(tmp_path, GREY | OTHERS[others], kind)
    require_same(images(path, split=before.split), before)
    assert len(kept(cache)) == 2
    monkeypatch.delattr(unitmargin.data.pixels, "pixels")
    require_same(images(path, split=before.split), before)


def test_another_run_on_all_images_has_arrays_of_its_own(tmp_path: Path) -> None:
    before = images(laid(tmp_path, GREY, "folder"))
    path = laid(tmp_path, OTHERS["a colour"], "folder")
    for _ in range(2):
        assert images(path).in_shape == (3, 4, 4)
        require_same(images(path, split=before.split), before)
    path = laid(tmp_path, {"c/1.png": png(80, mode="L"), "c/2.png": png(90, mode="L")}, "folder")
    require_same(images(path, split=before.split), before)
    assert images(path).classes == ("a", "b", "c")


def test_an_empty_class_is_left_out_where_the_split_does_not_know_it(
    tmp_path: Path, cache: Path
) -> None:
    path = laid(tmp_path, GREY, "folder")
    before = images(path)
    (path / "c").mkdir()
    require_same(images(path, split=before.split), before)
    with pytest.raises(DataError, match="every class must hold an image, got none in c"):
        images(path)
    for file in (path / "b").iterdir():
        file.unlink()
    with pytest.raises(DataError, match="every class must hold an image, got none in b"):
        images(path, split=before.split)


def test_the_images_of_a_run_are_decoded_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = laid(tmp_path, GREY, "folder")
    before = images(path)
    monkeypatch.delattr(unitmargin.data.pixels, "pixels")
    require_same(images(path, split=before.split), before)
    assert len(kept(cache)) == 1


def test_images_beside_those_of_a_run_are_read_once_and_those_of_the_run_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = laid(tmp_path, GREY, "folder")
    before = images(path)
    laid(tmp_path, OTHERS["all at once"], "folder")
    module, passes = import_module("unitmargin.data.images"), []
    entries = module._of_files

    def counted(path: Path, words: str) -> Iterator[tuple[str, Callable[[], bytes]]]:
        passes.append(words)
        return entries(path, words)

    monkeypatch.setattr(module, "_of_files", counted)
    for _ in range(2):
        require_same(images(path, split=before.split), before)
    assert passes == ["reading photos", "decoding photos"]


def test_an_image_that_is_gone_is_named_before_any_is_decoded() -> None:
    split = Split(
        classes=["a", "b"],
        train=[SplitImage(label="a", file="1.png", sha256=hashlib.sha256(b"1").hexdigest())],
        test=[SplitImage(label="b", file="2.png", sha256=hashlib.sha256(b"2").hexdigest())],
    )
    places = {"a/1.png": Place(False, "a", "1.png"), "c/3.png": Place(False, "c", "3.png")}
    layout = Layout(places, ("a", "c"), split=False)
    entries = [(name, name[2:3].encode) for name in (*places, "notes.txt")]
    with pytest.raises(DataError, match="photos: must hold every image .* got no b/2.png with"):
        known_images(layout, entries, split, Path("photos"))
    own = split.model_copy(update={"test": split.train})
    assert known_images(layout, entries, own, Path("photos")) == Layout(
        {"a/1.png": places["a/1.png"]}, ("a",), split=False
    )


def test_names_need_no_encoding(tmp_path: Path) -> None:
    """Those of files on Linux are bytes; some are not UTF-8."""
    folder = write_folder(tmp_path / "photos", GREY)
    (folder / "a" / os.fsdecode(b"\xe9.png")).write_bytes(png(50, mode="L"))
    first = images(folder)
    (folder / "a/new.png").write_bytes(png(60, mode="L"))
    require_same(images(folder, split=first.split), first)
