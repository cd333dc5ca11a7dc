"""Ways to spoil the files of a run, and to make recipes and data sets that are wrong."""

import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from data.tiny import png
from PIL import Image
from pyarrow.parquet import write_table

Spoil = Callable[[], object]
"""Something done to the files below the working directory."""

RECIPE = """name = "tiny"
verify_samples = 20

[data]
name = "digits"
limit = 60

[model]
name = "dense_ugnn"
hidden = [16]

[training]
epochs = 1
batch_size = 32
"""

FILES = """name = "new"
[data]
name = "{name}"
path = "data"
[model]
name = "dense_ugnn"
hidden = [2]
[training]
epochs = 1
"""

GARBAGE = bytes(range(256))

ONE_PIXEL = png(3, (1, 1))


def write(file: str, content: str | bytes, encoding: str = "utf-8") -> Spoil:
    """A file of that content."""

    def spoil() -> None:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_bytes(content if isinstance(content, bytes) else content.encode(encoding))

    return spoil


def gone(file: str) -> Spoil:
    """The file, or folder, is missing."""
    return lambda: shutil.rmtree(file) if Path(file).is_dir() else Path(file).unlink()


def cut(file: str, share: float = 0.6) -> Spoil:
    """The file ends early."""

    def spoil() -> None:
        whole = Path(file).read_bytes()
        Path(file).write_bytes(whole[: int(share * len(whole))])

    return spoil


def folder(file: str) -> Spoil:
    """A folder stands in the file's place."""

    def spoil() -> None:
        Path(file).unlink(missing_ok=True)
        Path(file).mkdir(parents=True)

    return spoil


def edit(file: str, old: str, new: str) -> Spoil:
    """The file with its first ``old`` replaced."""

    def spoil() -> None:
        text = Path(file).read_bytes().decode()
        assert old in text, file
        Path(file).write_bytes(text.replace(old, new, 1).encode())

    return spoil


def whole(file: str, change: Callable[[str], str]) -> Spoil:
    """The file with its text changed."""
    return lambda: Path(file).write_bytes(change(Path(file).read_bytes().decode()).encode())


def cell(file: str, column: str, value: str) -> Spoil:
    """A table whose first row has another value in that column."""

    def spoil() -> None:
        header, first, *others = Path(file).read_text().splitlines()
        cells = first.split(",")
        cells[header.split(",").index(column)] = value
        Path(file).write_text("\n".join([header, ",".join(cells), *others]) + "\n")

    return spoil


def link(file: str, target: str) -> Spoil:
    """A symbolic link."""
    return lambda: os.symlink(target, file)


def recipe(old: str = "", new: str = "") -> Spoil:
    """The recipe of the run, with something replaced, as new.toml."""
    assert old in RECIPE
    return write("new.toml", RECIPE.replace(old, new, 1).replace('"tiny"', '"new"', 1))


def arrays(**changes: Any) -> list[Spoil]:
    """A recipe of an .npz file with some arrays changed, or left out where they are None."""
    right = {
        "x_train": np.eye(4, 2, dtype=np.float32), "y_train": np.array([0, 1, 0, 1]),
        "x_test": np.eye(2, dtype=np.float32), "y_test": np.array([0, 1]),
    }  # fmt: skip
    kept = {name: value for name, value in (right | changes).items() if value is not None}

    def make() -> None:
        with Path("data").open("wb") as file:
            np.savez(file, **kept)

    return [write("new.toml", FILES.format(name="npz")), make]


def saved(content: Any) -> Spoil:
    """An array as a.npy."""
    return lambda: np.save("a.npy", content)


def pictures(*spoils: Spoil) -> list[Spoil]:
    """A recipe of a folder of images, which is then spoilt."""

    def make() -> None:
        for number, split in enumerate(("train", "test")):
            for label in "ab":
                place = Path("data", split, label)
                place.mkdir(parents=True)
                for file in range(2):
                    Image.new("L", (4, 4), 50 * file + number).save(place / f"{file}.png")

    return [write("new.toml", FILES.format(name="images")), make, *spoils]


def option(line: str) -> Spoil:
    """The recipe of the folder with another option of its data."""
    return edit("new.toml", "[data]", f"[data]\n{line}")


def move(old: str, new: str) -> Spoil:
    """A file or folder in another place."""

    def spoil() -> None:
        Path(new).parent.mkdir(parents=True, exist_ok=True)
        Path(old).rename(new)

    return spoil


def unsplit(place: str) -> Spoil:
    """The classes of the train samples alone."""

    def spoil() -> None:
        for label in Path(place, "train").iterdir():
            label.rename(Path(place, label.name))
        shutil.rmtree(Path(place, "train"))
        shutil.rmtree(Path(place, "test"))

    return spoil


def flat(place: str) -> Spoil:
    """One image, in no folder of a class."""

    def spoil() -> None:
        Path(place, "train/a/1.png").rename(Path(place, "1.png"))
        shutil.rmtree(Path(place, "train"))
        shutil.rmtree(Path(place, "test"))

    return spoil


def zipped(place: str, name: str | None = None) -> Spoil:
    """A zip archive in the place of a folder, with one more file of that name."""

    def spoil() -> None:
        files = {str(file.relative_to(place)): file for file in sorted(Path(place).rglob("*.*"))}
        with zipfile.ZipFile("packed", "w") as archive:
            for inner, file in files.items():
                archive.write(file, inner)
            if name is not None:
                archive.writestr(name, b"")
        shutil.rmtree(place)
        Path("packed").rename(place)

    return spoil


def new(**changes: Any) -> Spoil:
    """New inputs of the run, three bytes of images as new.npz, with arrays changed or left out."""
    right = {"x": np.zeros((3, 1, 8, 8), np.uint8)}
    kept = {name: value for name, value in (right | changes).items() if value is not None}
    return lambda: np.savez("new.npz", **kept)


def photos(*spoils: Spoil, size: tuple[int, int] = (8, 8), mode: str = "L") -> list[Spoil]:
    """A folder of two grey images for the run, which is then spoilt."""

    def make() -> None:
        Path("photos").mkdir()
        for number in range(2):
            Image.new(mode, size, 50 * number).save(Path("photos", f"{number}.png"))

    return [make, *spoils]


def table(*rows: list[str]) -> Spoil:
    """A table of new inputs."""
    return write("new.csv", "".join(f"{','.join(row)}\n" for row in rows))


ROWS = "".join(f"{row},{20 + row},{'ab'[row % 2]},{row % 2}\n" for row in range(20))

TABULAR = """name = "new"
[data]
path = "a.csv"
{options}
[model]
name = "dense_ugnn"
hidden = [2]
[training]
epochs = 1
"""


def parquet(file: str, **columns: list[Any]) -> Spoil:
    """A Parquet file of these columns."""

    def spoil() -> None:
        table = pa.table({name: pa.array(cells) for name, cells in columns.items()})
        if "image" in columns:
            image = pa.array(columns["image"], pa.binary())
            table = table.set_column(0, "image", image)
        write_table(table, file)

    return spoil


def tabular(old: str = "", new: str = "", options: str = "") -> list[Spoil]:
    """A recipe of a table in which something is replaced, or which is another one."""
    content = f"one,age,word,label\n{ROWS}"
    assert old in content
    content = content.replace(old, new, 1) if old else new or content
    return [write("new.toml", TABULAR.format(options=options)), write("a.csv", content)]
