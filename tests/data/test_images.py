"""Images by class: decoding, classes from folders, and errors that name the file."""

import lzma
import os
import tarfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import torch
from data.tiny import kept, photo, png, tar_bytes, write_folder, zip_bytes
from pyarrow.parquet import write_table

import unitmargin.data.pixels
from unitmargin.data.files import DataError
from unitmargin.data.image_options import ImageOptions
from unitmargin.data.images import images
from unitmargin.data.pixels import pixels
from unitmargin.data.samples import Samples


def packed(path: Path, files: dict[str, bytes], folders: tuple[str, ...] = ()) -> Path:
    path.write_bytes(lzma.compress(tar_bytes(files, folders=folders)))
    return path


def values(inputs: torch.Tensor) -> list[int]:
    return inputs[:, 0, 0, 0].tolist()


@pytest.mark.parametrize("top", ["", "pets/", "./", "./pets/"])
@pytest.mark.parametrize("archive", [True, False])
def test_classes_and_files_are_sorted(
    tmp_path: Path, pets: dict[str, bytes], top: str, archive: bool
) -> None:
    files = {top + name: content for name, content in pets.items()}
    files |= {top + "read me.txt": b"about", top + "train/cat/.hidden": b"", "val/cow/1.png": b""}
    path = packed(tmp_path / "a", files) if archive else write_folder(tmp_path / "a", files)
    dataset = images(path)
    assert dataset.classes == ("cat", "dog")
    assert dataset.in_shape == (3, 4, 4)
    assert values(dataset.train.inputs) == [10, 20, 30]
    assert dataset.train.labels.tolist() == [0, 0, 1]
    assert values(dataset.test.inputs) == [40, 60]
    assert dataset.train.scale == 255


def test_a_folder_and_its_archive_give_one_data_set(tmp_path: Path, pets: dict[str, bytes]) -> None:
    extra = {"val/cow/1.png": png(1), "train/cat/.hidden": b"", "about.txt": b"pets"}
    folder = write_folder(tmp_path / "pets", pets | extra)
    for link in ("test/dog/0.png", "test/cat/9.png", "train/dog/5.png"):
        (folder / link).hardlink_to(folder / "train/dog/1.png")
    (folder / "train/cat/7.png").hardlink_to(folder / "val/cow/1.png")
    archive = tmp_path / "pets.tar.gz"
    with tarfile.open(archive, "w:gz") as packing:
        packing.add(folder, "pets")
    first, second = images(folder), images(archive)
    assert values(first.train.inputs) == [10, 20, 1, 30, 30]
    assert values(first.test.inputs) == [40, 30, 30, 60]
    assert first.classes == second.classes
    for mine, other in ((first.train, second.train), (first.test, second.test)):
        assert torch.equal(mine.inputs, other.inputs)
        assert torch.equal(mine.labels, other.labels)


@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize("link", ["test/dog/0.png", "train/cow", "more"])
def test_a_symbolic_link_is_refused_in_folder_and_archive(
    tmp_path: Path, pets: dict[str, bytes], archive: bool, link: str
) -> None:
    path = write_folder(tmp_path / "pets", pets)
    (path / link).symlink_to(path / "train/dog")
    if archive:
        path = tmp_path / "pets.tar"
        with tarfile.open(path, "w") as packing:
            packing.add(tmp_path / "pets", ".")
    with pytest.raises(DataError, match=f"{path}: .*the symbolic link {link};"):
        images(path)


def test_pixels_keep_their_places(tmp_path: Path, pets: dict[str, bytes]) -> None:
    from PIL import Image

    stored = np.arange(4 * 4 * 3, dtype=np.uint8).reshape(4, 4, 3)
    folder = write_folder(tmp_path / "a", pets)
    Image.fromarray(stored).save(folder / "train/cat/1.png")
    assert np.array_equal(images(folder).train.inputs[0].numpy(), stored.transpose(2, 0, 1))


def test_grey_images_have_one_channel_if_all_are_grey(
    tmp_path: Path, pets: dict[str, bytes]
) -> None:
    grey = {name: png(50, mode="L") for name in pets}
    assert images(write_folder(tmp_path / "grey", grey)).in_shape == (1, 4, 4)
    mixed = images(write_folder(tmp_path / "mixed", grey | {"test/dog/1.png": png(50)}))
    assert mixed.in_shape == (3, 4, 4)
    assert bool((mixed.train.inputs == 50).all())


def test_a_later_member_replaces_an_earlier_one(tmp_path: Path, pets: dict[str, bytes]) -> None:
    both = tar_bytes(pets)[: 2 * 512 * len(pets)] + tar_bytes({"train/cat/1.png": png(99)})
    path = tmp_path / "a.tar"
    path.write_bytes(both)
    assert values(images(path).train.inputs) == [99, 20, 30]


def test_images_are_decoded_once(
    tmp_path: Path, cache: Path, pets: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(tmp_path / "a", pets)
    first = images(path)
    monkeypatch.delattr(unitmargin.data.pixels, "pixels")
    again = images(path)
    assert torch.equal(first.train.inputs, again.train.inputs)
    assert again.classes == first.classes
    (folder,) = kept(cache)
    assert again.train.origin is not None
    assert again.train.origin.folder == folder


def test_a_damaged_cache_is_made_again(tmp_path: Path, cache: Path, pets: dict[str, bytes]) -> None:
    path = packed(tmp_path / "a", pets)
    first = images(path)
    file = kept(cache)[0] / "x.npy"
    whole = file.read_bytes()
    assert bytes([10] * 9) in whole
    for damaged in (whole[:-50], b"", whole.replace(bytes([10] * 9), bytes([11] * 9), 1)):
        file.unlink()  # the pages that first has mapped stay
        file.write_bytes(damaged)
        assert torch.equal(images(path).train.inputs, first.train.inputs)
        assert file.read_bytes() == whole


def test_an_image_of_the_same_size_and_time_is_decoded_again(
    tmp_path: Path, pets: dict[str, bytes]
) -> None:
    folder = write_folder(tmp_path / "a", pets)
    file = folder / "train/cat/1.png"
    state = file.stat()
    assert values(images(folder).train.inputs) == [10, 20, 30]
    file.write_bytes(png(11))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)
    assert values(images(folder).train.inputs) == [11, 20, 30]


def test_a_copy_of_a_folder_is_not_decoded_again(
    tmp_path: Path, cache: Path, pets: dict[str, bytes]
) -> None:
    for name in "ab":
        images(write_folder(tmp_path / name, pets))
    assert len(kept(cache)) == 1


def test_the_cache_folder_may_be_passed(
    tmp_path: Path, cache: Path, pets: dict[str, bytes]
) -> None:
    images(packed(tmp_path / "a", pets), tmp_path / "other")
    assert len(kept(tmp_path / "other")) == 1
    assert not cache.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train/cat/3.png": b"text"}, "train/cat/3.png: must be a whole image"),
        ({"train/cat/3.png": png()[:40]}, "train/cat/3.png: must be a whole image"),
        (
            {"train/dog/9.png": png(size=(5, 4))},
            "train/dog/9.png: must have the size of the images before it, 4 x 4, got 4 x 5",
        ),
        ({"train/cow/1.png": png()}, "must have the same classes, got no test/cow"),
        ({"test/cow/1.png": png()}, "must have the same classes, got no train/cow"),
        ({"train/stray.png": png()}, "must lie as .*got train/stray.png"),
        ({"train/cat/deep/1.png": png()}, "must lie as .*got train/cat/deep"),
        ({"more/train/cat/1.png": png()}, "side by side, got both under . and more"),
    ],
)
@pytest.mark.parametrize("archive", [True, False])
def test_images_refuse_and_name_the_file(
    tmp_path: Path,
    cache: Path,
    pets: dict[str, bytes],
    changes: dict[str, bytes],
    message: str,
    archive: bool,
) -> None:
    write = packed if archive else write_folder
    path = write(tmp_path / "a", pets | changes)
    with pytest.raises(DataError, match=f"{path}.*{message}"):
        images(path)
    assert kept(cache) == []


@pytest.mark.parametrize("split", ["train", "test"])
def test_both_splits_are_needed(tmp_path: Path, pets: dict[str, bytes], split: str) -> None:
    files = {name: content for name, content in pets.items() if name.startswith(split)}
    other = "test" if split == "train" else "train"
    with pytest.raises(DataError, match=f"got no class in {other}"):
        images(write_folder(tmp_path / "a", files))


def test_no_images_at_all(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must hold images as train/CLASS/IMAGE"):
        images(write_folder(tmp_path / "a", {"notes.txt": b""}))


def test_an_empty_class_is_refused(tmp_path: Path, pets: dict[str, bytes]) -> None:
    empty = ("train/cow", "test/cow")
    with pytest.raises(DataError, match="every class must hold an image, got none in test/cow"):
        images(packed(tmp_path / "a", pets, empty))
    folder = write_folder(tmp_path / "b", pets)
    (folder / "train/cow").mkdir()
    (folder / "test/cow").mkdir()
    with pytest.raises(DataError, match="every class must hold an image, got none in test/cow"):
        images(folder)


def test_a_class_whose_name_is_no_text_is_refused_before_the_training(
    tmp_path: Path, pets: dict[str, bytes]
) -> None:
    folder = write_folder(tmp_path / "a", pets)
    try:
        for split in ("train", "test"):
            (folder / split / "dog").rename(folder / split / os.fsdecode(b"ch\xe9"))
    except OSError:
        pytest.skip("this file system has names of text alone")
    with pytest.raises(DataError, match=r"must have a name in UTF-8, got 'ch.udce9'; rename it"):
        images(folder)


def test_one_class_is_refused(tmp_path: Path, cache: Path, pets: dict[str, bytes]) -> None:
    path = packed(tmp_path / "a", {name: pets[name] for name in pets if "cat" in name})
    with pytest.raises(DataError, match=f"{path}: .*classes must be two or more"):
        images(path)
    assert kept(cache) == []


def test_an_archive_cut_short_is_refused(
    tmp_path: Path, cache: Path, pets: dict[str, bytes]
) -> None:
    path = packed(tmp_path / "a.tar.xz", pets)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match=f"{path}: must be readable"):
        images(path)
    assert kept(cache) == []


SIZES = [(40, 30), (30, 40), (64, 64), (25, 25), (90, 33)]
KINDS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")


def album(root: Path, count: int = 10) -> Path:
    """Photos of mixed sizes, formats and orientations in a folder for each class."""
    files = {
        f"{label}/{number}.{kind.lower()}": photo(number, size, kind, 1 + number % 8)
        for shift, label in enumerate(("cat", "dog"))
        for number in range(shift, count + shift)
        for size, kind in [(SIZES[number % 5], KINDS[(number + shift) % 5])]
    }
    return write_folder(root, files)


def test_photos_of_mixed_sizes_are_resized_and_split(tmp_path: Path) -> None:
    path = album(tmp_path / "photos")
    with pytest.raises(DataError, match=r"got \d+ x \d+ .*resize = 64 makes all 64 x 64"):
        images(path)
    dataset = images(path, options=ImageOptions(resize=16))
    assert dataset.in_shape == (3, 16, 16)
    assert torch.bincount(dataset.test.labels).tolist() == [2, 2]
    assert torch.bincount(dataset.train.labels).tolist() == [8, 8]
    assert dataset.split is not None
    first = dataset.split.test[0]
    content = (path / first.label / first.file).read_bytes()
    expected = pixels(content, "x", 16).transpose(2, 0, 1)
    assert np.array_equal(dataset.test.stored(torch.tensor(0)).numpy(), expected)


@pytest.mark.parametrize("kind", ["zip", "tar", "folder"])
def test_a_split_is_the_same_in_every_place(tmp_path: Path, kind: str) -> None:
    options = ImageOptions(resize=8, test_share=0.4, split_seed=3)
    first = images(album(tmp_path / "photos"), options=options)
    files = {
        f"top/{file.relative_to(tmp_path / 'photos')}": file.read_bytes()
        for file in sorted((tmp_path / "photos").rglob("*.*"), reverse=True)
    }
    path = tmp_path / kind
    if kind == "folder":
        write_folder(path, files)
    else:
        path.write_bytes(zip_bytes(files) if kind == "zip" else tar_bytes(files))
    again = images(path, options=options)
    assert len(first.test) == 8
    assert again.split == first.split
    assert again.train.sha256 == first.train.sha256
    assert again.test.sha256 == first.test.sha256


def test_a_split_that_is_given_is_kept(tmp_path: Path) -> None:
    path, options = album(tmp_path / "photos"), ImageOptions(resize=8)
    first = images(path, options=options)
    write_folder(path, {"cat/new.png": photo(40, (30, 30)), "cow/1.png": photo(41, (30, 30))})
    (path / "dog/1.webp").rename(path / "dog/renamed.webp")
    again = images(path, options=options, split=first.split)
    assert again.classes == first.classes
    assert again.train.sha256 == first.train.sha256
    assert again.test.sha256 == first.test.sha256
    assert again.split == first.split
    (path / "dog/2.gif").write_bytes(photo(50, (30, 30), "GIF"))
    with pytest.raises(DataError, match=r"got no dog/2.gif with the content that it had;"):
        images(path, options=options, split=first.split)


@pytest.mark.parametrize("option", ["test_share", "split_seed"])
def test_options_of_a_split_are_refused_where_there_is_one(
    tmp_path: Path, pets: dict[str, bytes], option: str
) -> None:
    options = ImageOptions(**{option: 0.5 if option == "test_share" else 1})
    with pytest.raises(DataError, match=f"{option} must be left out for images that lie in"):
        images(write_folder(tmp_path / "a", pets), options=options)


def test_every_way_of_decoding_is_cached_apart(
    tmp_path: Path, cache: Path, pets: dict[str, bytes]
) -> None:
    path = write_folder(tmp_path / "a", pets)
    for _ in range(2):
        for options in ({}, {"resize": 2}, {"resize": 2, "channels": 1}, {"channels": 1}):
            channels, side = options.get("channels", 3), options.get("resize", 4)
            assert images(path, options=ImageOptions(**options)).in_shape == (channels, side, side)
    assert len(kept(cache)) == 4


def test_val_takes_the_place_of_test(tmp_path: Path, pets: dict[str, bytes]) -> None:
    named = {name.replace("test", "val"): content for name, content in pets.items()}
    dataset = images(write_folder(tmp_path / "a", named))
    assert values(dataset.test.inputs) == [40, 60]
    assert dataset.split is None


def test_an_interruption_leaves_nothing(
    tmp_path: Path, cache: Path, pets: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(unitmargin.data.pixels, "pixels", interrupt)
    with pytest.raises(KeyboardInterrupt):
        images(write_folder(tmp_path / "a", pets))
    assert kept(cache) == []


def test_an_interrupted_decoding_goes_on(
    tmp_path: Path, cache: Path, pets: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = (packed(tmp_path / name, pets) for name in ("a", "other"))
    whole = images(other, tmp_path / "elsewhere")
    decoded: list[str] = []
    original = pixels

    def noted(content: bytes, name: str, *options: object) -> np.ndarray:
        if len(decoded) == 3:
            raise KeyboardInterrupt
        decoded.append(name)
        return original(content, name)

    monkeypatch.setattr(unitmargin.data.pixels, "pixels", noted)
    with pytest.raises(KeyboardInterrupt):
        images(path)
    assert [folder.suffix for folder in kept(cache)] == [".begun"]
    begun, decoded = decoded, []
    again = images(path)
    assert len(decoded) == 2
    assert not set(begun) & set(decoded)
    assert len(kept(cache)) == 1
    for mine, right in ((again.train, whole.train), (again.test, whole.test)):
        assert torch.equal(mine.inputs, right.inputs)
        assert mine.sha256 == right.sha256


@pytest.mark.parametrize("last", [1, 2, 3])
def test_a_later_member_replaces_an_earlier_one_also_after_an_interruption(
    tmp_path: Path, pets: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    """As long as the later one is not written, what is noted must not be what was there before."""
    path = tmp_path / "a.tar"
    path.write_bytes(
        tar_bytes(pets)[: 2 * 512 * len(pets)]
        + tar_bytes({"train/cat/1.png": png(99), "train/dog/9.png": png(50)})
    )
    original, decoded = pixels, 0

    def interrupted(content: bytes, name: str, *options: object) -> np.ndarray:
        nonlocal decoded
        decoded += 1
        if decoded > len(pets) + 1:
            raise KeyboardInterrupt
        return original(content, name)

    def again(content: bytes, name: str, *options: object) -> np.ndarray:
        nonlocal decoded
        decoded += 1
        if decoded == last:
            raise KeyboardInterrupt
        return original(content, name)

    for broken in (interrupted, again):
        decoded = 0
        monkeypatch.setattr(unitmargin.data.pixels, "pixels", broken)
        with pytest.raises(KeyboardInterrupt):
            images(path)
    monkeypatch.setattr(unitmargin.data.pixels, "pixels", original)
    assert values(images(path).train.inputs) == [99, 20, 30, 50]


def test_samples_of_kept_images_are_as_those_in_memory(tmp_path: Path) -> None:
    dataset = images(album(tmp_path / "photos"), options=ImageOptions(resize=8))
    for samples in (dataset.train, dataset.test, dataset.train.take(5)):
        assert samples.mapped
        assert samples.rows is not None
        own = Samples(samples.stored(slice(None)), samples.labels, samples.scale)
        assert not own.mapped
        for _ in range(2):  # computed, then remembered
            assert samples.sha256 == own.sha256
        assert torch.equal(samples.ends(), own.ends())
        for index in (slice(1, 4), torch.tensor([2, 0]), samples.labels == 1):
            for mine, right in zip(samples.batch(index), own.batch(index), strict=True):
                assert torch.equal(mine, right)


def test_a_changed_copy_of_mapped_samples_has_a_hash_of_its_own(
    tmp_path: Path, pets: dict[str, bytes]
) -> None:
    samples = images(write_folder(tmp_path / "a", pets)).train
    changed = [
        replace(samples, inputs=255 - samples.inputs),
        replace(samples, labels=samples.labels.flip(0)),
        replace(samples, scale=1.0),
        replace(samples, upsample=2),
        samples.take(2),
    ]
    for _ in range(2):
        assert len({part.sha256 for part in (samples, *changed)}) == 6
    assert not changed[0].mapped


@pytest.mark.parametrize("change", ["replaced", "gone"])
def test_data_that_change_while_they_are_read_are_not_kept(
    tmp_path: Path,
    cache: Path,
    pets: dict[str, bytes],
    change: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else what was decoded would stand for ever under the name of what was there before."""
    folder = write_folder(tmp_path / "a", pets)
    last = folder / max(pets)
    truth = images(folder, tmp_path / "other")
    begun = {"replaced": lambda: last.write_bytes(png(200)), "gone": last.unlink}
    module = import_module("unitmargin.data.images")
    real = module.decode_images

    def decode(*given: object) -> None:
        begun[change]()
        real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "decode_images", decode)
    with pytest.raises(DataError, match="must stay as it is while it is read, got .*load it again"):
        images(folder)
    assert kept(cache) == []
    monkeypatch.undo()
    last.write_bytes(pets[max(pets)])
    monkeypatch.setenv("UNITMARGIN_CACHE", str(cache))
    assert torch.equal(images(folder).train.inputs, truth.train.inputs)


def test_a_column_that_is_called_none_is_no_missing_column(tmp_path: Path) -> None:
    columns = {"image": [png(n) for n in range(6)], "None": ["x", "y"] * 3, "label": ["0", "1"] * 3}
    file = tmp_path / "a.parquet"
    write_table(pyarrow.table(columns), file)
    os.utime(file)
    for label, classes in ((None, ("0", "1")), ("None", ("x", "y"))):
        assert images(file, options=ImageOptions(label=label)).classes == classes
