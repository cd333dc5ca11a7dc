"""Parquet files of one data set: found, counted, and told apart by their names."""

from pathlib import Path

import pytest

from unitmargin.data.files import DataError
from unitmargin.data.shards import find_shards, fingerprint_shards, split_shards


def touched(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def parted(path: Path) -> tuple[list[str], list[str]]:
    train, test = split_shards(path, find_shards(path))
    return [shard.name for shard in train], [shard.name for shard in test]


@pytest.mark.parametrize(
    ("names", "train", "test"),
    [
        (["train-00000-of-00001.parquet", "test-00000-of-00001-0ab1.parquet"], 1, 1),
        (["train-00000-of-00001.parquet", "validation-00000-of-00001.parquet"], 1, 1),
        (["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet",
          "data/test-00000-of-00001.parquet", "README.md"], 2, 1),
        (["train/0000.parquet", "train/0001.parquet", "test/0000.parquet"], 2, 1),
        (["my_train_set.parquet", "my_test_set.parquet"], 1, 1),
        (["a.parquet", "b.parquet", ".hidden.parquet"], 2, 0),
        (["train-00000-of-00001.PARQUET", "test-00000-of-00001.Parquet"], 1, 1),
        (["Train.parquet", "TEST.parquet"], 1, 1),
        (["Train/0.parquet", "Train/1.parquet", "Test/0.parquet"], 2, 1),
        (["train.parquet"], 1, 0),
    ],
)  # fmt: skip
def test_splits_are_told_by_the_names_of_files_or_folders(
    tmp_path: Path, names: list[str], train: int, test: int
) -> None:
    found = parted(touched(tmp_path, *names))
    assert tuple(map(len, found)) == (train, test)
    assert all("test" in name.lower() or "validation" in name for name in found[1])


def test_a_validation_beside_a_test_is_left_out(tmp_path: Path) -> None:
    names = [f"{split}-00000-of-00001.parquet" for split in ("test", "train", "validation")]
    assert parted(touched(tmp_path, *names)) == ([names[1]], [names[0]])


def test_a_named_file_is_all_there_is(tmp_path: Path) -> None:
    file = touched(tmp_path, "train-00000-of-00009.parquet") / "train-00000-of-00009.parquet"
    (shard,) = find_shards(file.rename(file.with_suffix(".PARQUET")))
    assert (shard.row(4), split_shards(file, [shard])) == ("row 5", ([shard], []))
    assert find_shards(tmp_path / "none") == find_shards(touched(tmp_path, "a.csv") / "a.csv") == []


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (["train-00000-of-00003.parquet", "train-00002-of-00003.parquet"],
         "all 3 files of train, got none with the number 00001; fetch it"),
        (["train-00000-of-99999.parquet"], "got none with the number 00001; fetch it"),
        (["train.parquet", "train.b.parquet"], "got train alone; add the others"),
        (["test-00000-of-00001.parquet", "test-b.parquet"], "got test alone; add the others"),
        (["train.parquet", "test.parquet", "extra.parquet"], "got extra.parquet; rename or move"),
        (["a/train.parquet", "a/test.parquet", "b/train.parquet", "b/test.parquet"],
         "got some in a and in b; name one of the folders"),
        (["a/x.parquet", "b/x.parquet"], "got some in a and in b; name one of the folders"),
    ],
)  # fmt: skip
def test_files_that_are_no_data_set_are_named(tmp_path: Path, names: list[str], rule: str) -> None:
    with pytest.raises(DataError, match=rule):
        parted(touched(tmp_path, *names))


def test_links_are_followed_as_in_the_cache_of_the_hub(tmp_path: Path) -> None:
    blobs = touched(tmp_path / "blobs", "0a1b")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/train.parquet").symlink_to(blobs / "0a1b")
    assert [shard.name for shard in find_shards(tmp_path / "data")] == ["train.parquet"]
    (blobs / "0a1b").unlink()
    with pytest.raises(DataError, match=r"train.parquet must be a file, got a broken link"):
        find_shards(tmp_path / "data")


def test_fingerprints_are_of_contents_names_and_labels(tmp_path: Path) -> None:
    def printed(label: str | None = None) -> str:
        return fingerprint_shards(find_shards(tmp_path), label)

    touched(tmp_path, "a.parquet")
    first = printed()
    assert printed() == first == printed(None)
    assert printed("kind") != first
    (tmp_path / "a.parquet").rename(tmp_path / "b.parquet")
    assert printed() != first
    (tmp_path / "b.parquet").rename(tmp_path / "a.parquet")
    (tmp_path / "a.parquet").write_text("a.parqueT")
    assert printed() != first
