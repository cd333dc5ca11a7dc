"""What a shard holds, and what is refused by its name."""

import bz2
import gzip
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from data.tiny import png, tar_bytes, zip_bytes

from unitmargin.data.files import DataError
from unitmargin.data.shard_entries import entries


def test_images_have_names_contents_and_classes(tmp_path: Path) -> None:
    files = {"b/1.v2.png": png(1), "b/1.v2.cls": b" cat\n", "a.CLS": b"dog", "a.JPG": b"?"}
    (tmp_path / "a.tar").write_bytes(tar_bytes(files | {"c.cls": b"0", "c.txt": b""}))
    found = [(name, word) for name, _, word in entries(tmp_path / "a.tar")]
    assert found == [
        (f"{tmp_path / 'a.tar'}: b/1.v2.png", "cat"),
        (f"{tmp_path / 'a.tar'}: a.JPG", "dog"),
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.png": png(1)}, r"a.tar: a.png must have a file .* ends in .cls .*got None"),
        ({"a.png": png(1), "a.cls": b" "}, "must have a file of its name that ends in .cls"),
        (
            {"a.png": png(1), "b.png": png(2), "a.cls": b"0", "b.cls": b"1"},
            r"a.tar: a.png must have its .cls file beside it, .*; pack the shard .* names sorted",
        ),
        ({"a.png": png(1), "a.PNG": png(2), "a.cls": b"0"}, "one image, got a.png and a.PNG; rem"),
        ({"a.v1.png": png(1), "a.v1.jpg": b"", "a.v1.cls": b"0"}, "one image, got a.v1.png and a."),
        ({"a.png": png(1), "a.cls": b"0", "a.CLS": b"1"}, "one .cls file, got a.cls and a.CLS;"),
        ({"../a.png": png(1), "../a.cls": b"0"}, "names must stay inside the archive, got ../a.p"),
    ],
)
def test_a_sample_is_an_image_and_its_class_beside_each_other(
    tmp_path: Path, files: dict[str, bytes], message: str
) -> None:
    (tmp_path / "a.tar").write_bytes(tar_bytes(files))
    with pytest.raises(DataError, match=message):
        list(entries(tmp_path / "a.tar"))


@pytest.mark.parametrize("name", ["b.png", "x/b.v1.CLS"])
@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (tarfile.LNKTYPE, "hard link"),
        (tarfile.SYMTYPE, "symbolic link"),
        (tarfile.FIFOTYPE, "pipe or device"),
    ],
)
def test_links_are_no_part_of_a_sample(tmp_path: Path, name: str, kind: bytes, word: str) -> None:
    files = {"a.png": png(1), "a.cls": b"0"}
    (tmp_path / "a.tar").write_bytes(tar_bytes(files, links={name: "a.png"}, kind=kind))
    with pytest.raises(DataError, match=f"a.tar: {name} must be a file, got a {word}; pack"):
        list(entries(tmp_path / "a.tar"))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, None])
def test_a_shard_is_a_plain_tar_file(tmp_path: Path, pack: Callable[[bytes], bytes] | None) -> None:
    files = {"a.png": png(1), "a.cls": b"0"}
    (tmp_path / "a.tar").write_bytes(pack(tar_bytes(files)) if pack else zip_bytes(files))
    with pytest.raises(DataError, match="a.tar: must be a plain tar file, .* compressed.*; unpack"):
        list(entries(tmp_path / "a.tar"))


def test_a_shard_that_is_damaged_or_ends_early_is_named(tmp_path: Path) -> None:
    files = {f"{name}.{kind}": b"1" * 600 for name in "ab" for kind in ("png", "cls")}
    whole = bytearray(tar_bytes(files))
    (tmp_path / "a.tar").write_bytes(whole[: 4 * 3 * 512])
    with pytest.raises(DataError, match="a.tar: must be readable.* empty header in place of a fil"):
        list(entries(tmp_path / "a.tar"))
    whole[2 * 3 * 512] ^= 1
    (tmp_path / "a.tar").write_bytes(whole)
    with pytest.raises(
        DataError, match="a.tar: must be readable.* bad checksum in place of a file"
    ):
        list(entries(tmp_path / "a.tar"))
