"""Training images in shards with test images in others: the same names, kinds and channels."""

from pathlib import Path

import pytest
from data.tiny import kept, png, tar_bytes

from unitmargin.data import load_dataset
from unitmargin.data.files import DataError

pytest.importorskip("webdataset", reason="the extra `shards` is not installed")


def shard(folder: Path, name: str, images: dict[str, bytes]) -> Path:
    """A shard whose images take turns in two classes."""
    files: dict[str, bytes] = {}
    for place, (stem, image) in enumerate(images.items()):
        files |= {f"{stem}.png": image, f"{stem}.cls": b"%d" % (place % 2)}
    (folder / f"{name}.tar").write_bytes(tar_bytes(files))
    return folder / f"{name}.tar"


def test_two_test_images_of_one_name_are_refused(tmp_path: Path, cache: Path) -> None:
    train = shard(tmp_path, "a-00", {"x": png(1), "y": png(2)})
    test = shard(tmp_path, "b-00", {"x": png(3), "y": png(4)})
    with pytest.raises(DataError, match=r"b-00.tar: x.png must be the name of one test image"):
        load_dataset("shards", train, test=str(tmp_path / "b-{00,00}.tar"))
    assert not [folder for folder in kept(cache) if folder.name.startswith("test")]
    assert len(load_dataset("shards", train, test=str(test)).test) == 2


def test_channels_of_test_images_are_those_of_the_training_images(tmp_path: Path) -> None:
    grey, coloured = ({name: png(9, mode=mode) for name in "xy"} for mode in ("L", "RGB"))
    for train, test, channels in ((grey, grey, 1), (coloured, coloured, 3), (coloured, grey, 3)):
        files = shard(tmp_path, "train", train), shard(tmp_path, "test", test)
        dataset = load_dataset("shards", files[0], test=str(files[1]))
        assert dataset.in_shape[0] == dataset.test.in_shape[0] == channels
    files = shard(tmp_path, "train", grey), shard(tmp_path, "test", coloured)
    with pytest.raises(DataError, match=r"got \(1, 4, 4\) and \(3, 4, 4\)"):
        load_dataset("shards", files[0], test=str(files[1]))
    assert load_dataset("shards", files[0], test=str(files[1]), channels=1).in_shape[0] == 1
