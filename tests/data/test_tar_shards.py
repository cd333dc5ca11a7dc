"""Shards: what each process reads, in which order, and what is refused."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
import torch
from data.tiny import kept, png, tar_bytes

from unitmargin.data import load_dataset
from unitmargin.data.files import DataError
from unitmargin.data.image_options import ImageOptions
from unitmargin.data.tar_shards import Sample, TarShards, expand_shards, open_shards

pytest.importorskip("webdataset", reason="the extra `shards` is not installed")

EACH = 6
"""Images a shard."""


def write_shards(folder: Path, name: str, lengths: list[int], first: int = 0) -> str:
    """Shards of images of one value each, which is unique; classes take turns."""
    value = first
    for number, length in enumerate(lengths):
        files: dict[str, bytes] = {}
        for _ in range(length):
            files[f"{value:04d}.png"] = png(value)
            files[f"{value:04d}.cls"] = b"%d" % (value % 3)
            value += 1
        (folder / f"{name}-{number:02d}.tar").write_bytes(tar_bytes(files))
    return str(folder / f"{name}-{{00..{len(lengths) - 1:02d}}}.tar")


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    return write_shards(tmp_path, "train", [EACH] * 4)


def seen(pattern: str, epoch: int, processes: int, length: int) -> list[list[int]]:
    """The values that each process sees in an epoch, of so many samples each."""
    shards = open_shards(pattern, ImageOptions())
    found = []
    for rank in range(processes):
        images = shards.images(shards.samples(5, epoch, rank, processes), 1)
        found.append([int(image[0, 0, 0]) for image, _ in islice(images, length)])
        images.close()
    return found


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_an_epoch_shows_every_sample_once(pattern: str, processes: int) -> None:
    parts = [seen(pattern, epoch, processes, 24 // processes) for epoch in (0, 1)]
    for part in parts:
        assert sorted(value for own in part for value in own) == list(range(24))
    assert parts[0] != parts[1]
    assert parts[0] == seen(pattern, 0, processes, 24 // processes)


@pytest.mark.parametrize("processes", [3, 5, 9])
def test_no_process_runs_out_of_samples(tmp_path: Path, processes: int) -> None:
    """Shards of other lengths than each other, and fewer of them than processes."""
    pattern = write_shards(tmp_path, "train", [1, 9, 2, 5])
    for own in seen(pattern, 0, processes, 40):
        assert len(own) == 40


def test_over_many_draws_every_sample_is_seen_equally_often(tmp_path: Path) -> None:
    """Nothing is preferred: a draw holds every shard once."""
    pattern = write_shards(tmp_path, "train", [2, 4, 3])
    counts = Counter(value for own in seen(pattern, 0, 2, 900) for value in own)
    assert set(counts) == set(range(9))
    assert max(counts.values()) - min(counts.values()) <= 0.1 * max(counts.values())


def test_samples_know_their_class_and_shape(pattern: str, cache: Path) -> None:
    shards = open_shards(pattern, ImageOptions())
    assert shards.in_shape == (3, 4, 4)
    assert shards.classes == ("0", "1", "2")
    assert shards.labels.tolist() == [value % 3 for value in range(24)]
    assert len(shards) == 24
    for image, label in islice(shards.images(shards.samples(0, 0, 0, 1), 1), 24):
        assert int(image[0, 0, 0]) % 3 == label
    every = torch.cat([*shards.every_image()])
    assert [round(255 * float(value)) for value in every[:, 0, 0, 0]] == list(range(24))
    assert len(kept(cache)) == 1


def test_the_hash_is_that_of_content_and_preparation(tmp_path: Path, pattern: str) -> None:
    first = open_shards(pattern, ImageOptions()).sha256
    assert open_shards(pattern, ImageOptions()).sha256 == first
    assert open_shards(pattern, ImageOptions(resize=2)).sha256 != first
    write_shards(tmp_path, "train", [EACH] * 4, first=1)
    assert open_shards(pattern, ImageOptions()).sha256 != first


def test_a_data_set_of_shards_streams_one_part_and_maps_the_other(
    tmp_path: Path, pattern: str
) -> None:
    test = write_shards(tmp_path, "test", [4, 2], first=100)
    dataset = load_dataset("shards", pattern, test=test, resize=2)
    assert dataset.in_shape == (3, 2, 2)
    assert isinstance(dataset.test.inputs, torch.Tensor)
    assert dataset.test.mapped
    assert dataset.test.inputs[:, 0, 0, 0].tolist() == [*range(100, 106)]
    assert dataset.test.labels.tolist() == [value % 3 for value in range(100, 106)]
    for change in (lambda: dataset.take(3), lambda: dataset.upsampled(2)):
        with pytest.raises(ValueError, match="must be left out for shards"):
            change()
    assert dataset.upsampled(1) is dataset


def test_shards_without_classes_or_images_are_refused(tmp_path: Path) -> None:
    for files, message in (
        ({"a.png": png(1)}, r"train-00.tar: a.png must have a file .* ends in .cls .*got None"),
        ({"a.txt": b"1"}, "must hold an image and its .cls, got none"),
    ):
        (tmp_path / "train-00.tar").write_bytes(tar_bytes(files))
        with pytest.raises(DataError, match=message):
            open_shards(str(tmp_path / "train-00.tar"), ImageOptions())


LIKE_MACOS = {"._c.png": b"", "._c.cls": b"", "__MACOSX/c.png": b"", ".a/c.png": b""}
OF_WEBDATASET = {"__meta__/c.png": b"", "./__meta__/c.cls": b"", "c.__key__": b""}


@pytest.mark.parametrize(
    "names",
    [
        ["a0.v1", "a0.v2", "a1"],
        ["./x/a", "x/b", "x.y/a", "x.y/b", "v1.0/a.b.c"],
        ["a", "b", "a"],
    ],
)
def test_what_is_counted_is_streamed(tmp_path: Path, names: list[str]) -> None:
    """Names with dots in them, and what is left out beside them."""
    parts = [
        tar_bytes(
            {f"{name}.JSON": b"{}", f"{name}.PNG": png(value), f"{name}.Cls": b"%d" % (value % 2)}
            | {**LIKE_MACOS, **OF_WEBDATASET, "notes": b""},
            folders=("d.png",),
            links={"notes.txt": "notes"},
        )
        for value, name in enumerate(names)
    ]
    file = tmp_path / "a.tar"
    file.write_bytes(b"".join(part.rstrip(b"\0") + bytes(-len(part.rstrip(b"\0")) % 512)
                              for part in parts) + bytes(1024))  # fmt: skip
    shards = open_shards(str(file), ImageOptions())
    assert shards.labels.tolist() == [value % 2 for value in range(len(names))]
    found = [int(image[0, 0, 0]) for image, _ in shards.images(drawn(shards, len(names)), 1)]
    assert sorted(found) == list(range(len(names)))


def drawn(shards: TarShards, count: int) -> Iterator[Sample]:
    """The first samples of one process of one."""
    return islice(shards.samples(0, 0, 0, 1), count)


@pytest.mark.parametrize("processes", [1, 3])
def test_shards_that_hold_nothing_any_more_end_the_stream(
    tmp_path: Path, pattern: str, processes: int
) -> None:
    shards = open_shards(pattern, ImageOptions())
    for file in shards.files[1:]:
        file.write_bytes(tar_bytes({}))
    assert len([*islice(shards.samples(0, 0, 0, processes), 2 * EACH)]) == 2 * EACH
    shards.files[0].write_bytes(tar_bytes({"a.txt": b""}))
    with pytest.raises(DataError, match="shards must hold the 24 samples that they had .* got non"):
        next(shards.samples(0, 0, 0, processes))


def test_a_backslash_is_part_of_a_name(tmp_path: Path) -> None:
    file = tmp_path / r"a\b-00.tar"
    file.touch()
    assert expand_shards(str(tmp_path / r"a\b-{00..00}.tar")) == (file,)


def test_what_is_missing_or_damaged_is_named(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(DataError, match=r"train-04.tar: must be a tar file of .*, found none"):
        expand_shards(str(tmp_path / "train-{00..04}.tar"))
    with pytest.raises(DataError, match=r"none.tar: .*, found none; .* --set data.test=TEST"):
        load_dataset("shards", pattern, test=str(tmp_path / "none.tar"))
    file = tmp_path / "train-02.tar"
    file.write_bytes(file.read_bytes()[:700])
    with pytest.raises(DataError, match=f"{file}: must be readable"):
        open_shards(pattern, ImageOptions())
    with pytest.raises(DataError, match="test must name shards of test images, got none"):
        load_dataset("shards", pattern)


def test_an_image_of_another_size_or_with_colours_is_named(tmp_path: Path) -> None:
    first = {"a.png": png(1, mode="L"), "a.cls": b"0", "b.png": png(2, mode="L"), "b.cls": b"1"}
    for other in (png(3, (5, 4), "L"), png(3)):
        files = first | {"c.png": other, "c.cls": b"0"}
        (tmp_path / "train-00.tar").write_bytes(tar_bytes(files))
        shards = open_shards(str(tmp_path / "train-00.tar"), ImageOptions())
        with pytest.raises(DataError, match=r"c.png: must be an image of 1 x 4 x 4"):
            list(shards.every_image())


def test_a_name_like_a_command_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads shards starts commands where an address asks for it."""
    monkeypatch.chdir(tmp_path)
    Path("pipe:touch made.tar").write_bytes(tar_bytes({"a.png": png(7), "a.cls": b"0"}))
    shards = open_shards("pipe:touch made.tar", ImageOptions())
    (image,) = shards.every_image()
    assert round(255 * float(image[0, 0, 0, 0])) == 7
    assert not Path("made.tar").exists()


def test_shards_that_change_under_a_training_are_named(tmp_path: Path, pattern: str) -> None:
    shards = open_shards(pattern, ImageOptions())
    file = shards.files[0]
    file.write_bytes(tar_bytes({"a.png": png(1), "a.cls": b"other"}))
    with pytest.raises(DataError, match=f"{file}: must stay as it is .* the class 'other'"):
        list(shards.every_image())
    file.write_bytes(tar_bytes({"0.png": bytes(9000)})[:5000])
    with pytest.raises(DataError, match=f"{file}: must be readable"):
        list(shards.every_image())
