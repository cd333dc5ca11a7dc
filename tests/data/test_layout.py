"""Where images may lie, and what is said of images that lie elsewhere."""

from pathlib import Path

import pytest
from data.tiny import write_folder, zip_bytes

from unitmargin.data.files import DataError
from unitmargin.data.layout import read_layout

SPLIT = ("train/cat/1.png", "train/dog/1.png", "test/cat/2.png", "test/dog/2.png")
FLAT = ("cat/1.png", "cat/2.png", "dog/1.png")


def laid(tmp_path: Path, *names: str, top: str = "", archive: bool = False) -> Path:
    files = {top + name: b"" for name in names}
    if not archive:
        return write_folder(tmp_path / "photos", files)
    (tmp_path / "photos.zip").write_bytes(zip_bytes(files))
    return tmp_path / "photos.zip"


@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize("top", ["", "pets/"])
@pytest.mark.parametrize("held_out", ["test", "val", "valid", "validation"])
def test_splits_lie_side_by_side(tmp_path: Path, held_out: str, top: str, archive: bool) -> None:
    names = (name.replace("test", held_out) for name in SPLIT)
    layout = read_layout(laid(tmp_path, *names, "notes.txt", top=top, archive=archive))
    assert layout.split
    assert layout.classes == ("cat", "dog")
    assert sorted(layout.places.values()) == [
        (False, "cat", "1.png"), (False, "dog", "1.png"), (True, "cat", "2.png"),
        (True, "dog", "2.png"),
    ]  # fmt: skip


def test_beside_test_val_is_left_out(tmp_path: Path) -> None:
    layout = read_layout(laid(tmp_path, *SPLIT, "val/cow/1.png", "val/deep/er/1.png"))
    assert layout.classes == ("cat", "dog")
    assert len(layout.places) == len(SPLIT)


def test_a_test_folder_without_classes_leaves_its_place_to_val(tmp_path: Path) -> None:
    names = [name.replace("test", "val") for name in SPLIT]
    layout = read_layout(laid(tmp_path, *names, "test/1.png", "test/2.png"))
    assert sum(place.test for place in layout.places.values()) == 2


@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize("top", ["", "pets/"])
def test_without_a_split_the_folders_are_the_classes(
    tmp_path: Path, top: str, archive: bool
) -> None:
    layout = read_layout(laid(tmp_path, *FLAT, "read me.txt", top=top, archive=archive))
    assert not layout.split
    assert layout.classes == ("cat", "dog")
    assert set(layout.places) == {top + name for name in FLAT}


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    layout = read_layout(laid(tmp_path, "train/1.png", "bus/1.png"))
    assert (layout.split, layout.classes) == (False, ("bus", "train"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("1.png", "2.png"), "got no folder; put the images of each class in a folder"),
        (("train/1.png", "test/1.png"), "got images in test and train alone; put the images"),
        ((*FLAT, "3.jpg"), r"files must lie as .*, got 3.jpg; move or remove it"),
        ((*FLAT, "cat/old/3.png"), "files must lie as .*, got cat/old; move or remove it"),
        (("a/b/cat/1.png", "a/b/dog/1.png"), "files must lie as .*, got a/b/cat; move"),
        ((*SPLIT, "train/3.png"), r"files must lie as .*, got train/3.png; move"),
        (SPLIT[:2], "got no class in test; add the folder, or name train itself to have its"),
        (SPLIT[2:], "got no class in train; add the folder"),
        ((*SPLIT, "train/cow/1.png"), "must have the same classes, got no test/cow; add it"),
    ],
)
@pytest.mark.parametrize("archive", [True, False])
def test_other_layouts_are_refused_and_the_expected_one_is_named(
    tmp_path: Path, names: tuple[str, ...], message: str, archive: bool
) -> None:
    path = laid(tmp_path, *names, archive=archive)
    with pytest.raises(DataError, match=rf"{path}: .*{message}"):
        read_layout(path)


def test_an_empty_class_is_refused(tmp_path: Path) -> None:
    path = laid(tmp_path, *FLAT)
    (path / "cow").mkdir()
    with pytest.raises(DataError, match="every class must hold an image, got none in cow;"):
        read_layout(path)
