"""Data in several Parquet files, as the Hugging Face hub names them."""

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from unitmargin.data.cells import PARQUET
from unitmargin.data.files import DataError, explained, left_out
from unitmargin.data.layout import HELD_OUT, TRAIN
from unitmargin.foundation.files import file_sha256

NAMES = "train-00000-of-00001.parquet, test-00000-of-00001.parquet (or validation) and the like"

ANY_PARQUET = "".join(f"[{sign}{sign.upper()}]" if sign.isalpha() else sign for sign in PARQUET)
"""The pattern of the end of their names, in small letters or large."""

NUMBERED = re.compile(r"(?P<before>.+)-(?P<number>\d{5,})-of-(?P<count>\d{5,})(?:-[0-9a-f]+)?")
"""The name of one of several files without its suffix; some end in a hash."""


class Shard(NamedTuple):
    """One Parquet file of a data set.

    Attributes:
        name: relative to the folder that was named, empty where the file itself was.
        split: of train, test and their likes the one in its name, empty without one.
    """

    name: str
    file: Path
    split: str

    def row(self, number: int) -> str:
        """The words for a row, counted from 0."""
        return f"{self.name} row {number + 1}".strip()


def find_shards(path: Path) -> list[Shard]:
    """The Parquet files that a path names: one file, or all in a folder or in folders of it.

    They are in the order of their names; none where there are none. Links are followed, since the
    hub's cache is made of them.

    Raises:
        DataError: some of the files that their names count are missing, or a link that leads to
            none.
    """
    if path.is_file():
        return [Shard("", path, "")] if path.suffix.lower() == PARQUET else []
    if not path.is_dir():
        return []
    with explained(path):
        found = sorted(file for depth in ("*", "*/*") for file in path.glob(depth + ANY_PARQUET))
    shards = []
    for file in found:
        name = file.relative_to(path).as_posix()
        if left_out(name) or file.is_dir():
            continue
        if not file.is_file():
            raise DataError(f"{path}: {name} must be a file, got a broken link; fetch it again")
        shards.append(Shard(name, file, _split(Path(name))))
    _require_whole(path, shards)
    return shards


def split_shards(path: Path, shards: list[Shard]) -> tuple[list[Shard], list[Shard]]:
    """The files of the train and of the test samples; all and none where no name says which.

    Test samples are those of the first split in ``HELD_OUT``; others of it are left out.

    Raises:
        DataError: one of the two alone, files beside them whose names do not say of which split
            they are, or files in several folders that are not called after splits.
    """
    _require_one_home(path, shards)
    names = {shard.split for shard in shards}
    held_out = next((name for name in HELD_OUT if name in names), "")
    if names == {""} or len(shards) == 1:
        return shards, []
    if "" in names:
        stray = next(shard.name for shard in shards if not shard.split)
        raise DataError(
            f"{path}: Parquet files must be called {NAMES} where one is, got {stray}; rename or "
            "move it"
        )
    if TRAIN not in names or not held_out:
        got = "train" if TRAIN in names else held_out
        raise DataError(
            f"{path}: must hold {NAMES}, got {got} alone; add the others, or call them data-... to "
            "have their rows split"
        )
    train, test = ([s for s in shards if s.split == name] for name in (TRAIN, held_out))
    return train, test


def fingerprint_shards(shards: list[Shard], label: str | None) -> str:
    """SHA-256 of names, contents and the column of labels: another one if a byte differs."""
    digest = hashlib.sha256(repr(label).encode())
    for shard in shards:
        with explained(shard.file):
            digest.update(f"{shard.name}\0{file_sha256(shard.file)}\0".encode())
    return digest.hexdigest()


def _split(name: Path) -> str:
    """Of the words of a file's name, or else of its folder's, the one that names a split."""
    for text in (name.stem, name.parent.name):
        words = {word for word in re.split(r"[\W_]+", text.lower()) if word in (TRAIN, *HELD_OUT)}
        if len(words) == 1:
            return words.pop()
    return ""


def _require_one_home(path: Path, shards: list[Shard]) -> None:
    """Raise for files of several data sets, as one folder a configuration holds them."""
    folders = {Path(shard.name).parent for shard in shards}
    homes = sorted({f.parent.as_posix() if f.name.lower() in (TRAIN, *HELD_OUT) else f.as_posix()
                    for f in folders})  # fmt: skip
    if len(homes) > 1:
        raise DataError(
            f"{path}: Parquet files must be of one data set, got some in {homes[0]} and in "
            f"{homes[1]}; name one of the folders"
        )


def _require_whole(path: Path, shards: list[Shard]) -> None:
    """Raise unless all files are there that the names of others count."""
    counted: dict[tuple[str, str], set[int]] = {}
    for shard in shards:
        if found := NUMBERED.fullmatch(shard.name[: -len(PARQUET)]):
            counted.setdefault((found["before"], found["count"]), set()).add(int(found["number"]))
    for (before, count), numbers in counted.items():
        if lost := sorted(set(range(min(int(count), 1 + len(numbers)))) - numbers):
            raise DataError(
                f"{path}: must hold all {int(count)} files of {before}, got none with the number "
                f"{lost[0]:05d}; fetch it"
            )
