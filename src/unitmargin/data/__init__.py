"""Data sets by name."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from unitmargin.data.arrays import npz
from unitmargin.data.augment import crop_flip, draw_crops, random_crop_flip
from unitmargin.data.cifar import cifar10, cifar100
from unitmargin.data.dataset import Dataset, joint_domain
from unitmargin.data.decoded import MixedSizesError
from unitmargin.data.decoding import spare_cores
from unitmargin.data.digits import digits
from unitmargin.data.encoding import (
    ENCODING,
    Encoding,
    radius_units,
    read_encoding,
    stated_units,
)
from unitmargin.data.files import DataError, left_out, not_found
from unitmargin.data.given import Given, as_samples, is_torch_data, read_batches
from unitmargin.data.image_options import ImageOptions
from unitmargin.data.images import images
from unitmargin.data.parquet import image_shards
from unitmargin.data.samples import Samples
from unitmargin.data.sharded import shards
from unitmargin.data.split import Split
from unitmargin.data.split_options import SplitOptions
from unitmargin.data.stream import InputBatch, holds_images, holds_splits, read_inputs
from unitmargin.data.table_options import TableOptions
from unitmargin.data.tables import load_table, usable
from unitmargin.data.tar_shards import TarShards
from unitmargin.data.toys import TOYS, toy
from unitmargin.foundation.choice import choose, require_kind
from unitmargin.foundation.files import as_path
from unitmargin.foundation.numbers import shown

__all__ = [
    "DATASETS", "ENCODING", "MADE", "DataError", "Dataset", "Encoding", "Given",
    "ImageOptions", "InputBatch", "MixedSizesError", "Samples", "Split",
    "SplitOptions", "TableOptions", "TarShards", "as_samples", "augment", "crop_flip", "draw_crops",
    "holds_images", "holds_splits", "image_shards", "is_torch_data", "joint_domain",
    "left_out", "load_dataset", "not_found", "radius_units", "random_crop_flip", "read_batches",
    "read_encoding", "read_inputs", "spare_cores", "stated_units", "usable",
]  # fmt: skip

Loader = Callable[..., Dataset]

MADE: dict[str, Loader] = {"digits": digits, **{name: partial(toy, name) for name in TOYS}}
"""Data sets that need no file."""

DATASETS: dict[str, Loader] = {
    **MADE,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "images": images,
    "npz": lambda path, cache: npz(path, cache=cache),
    "table": lambda path, cache, options=None: load_table(path, options or TableOptions()),
    "shards": shards,
}
"""All data sets; those that come from files are functions of a path and a cache folder."""


OPTIONS: dict[str, tuple[str, ...]] = {
    "images": (*ImageOptions.model_fields, "split"),
    "shards": ("resize", "channels", "test"),
    "table": ("table",),
}
"""What :func:`load_dataset` takes for a data set besides a path and a cache folder."""


def load_dataset(
    name: str,
    path: str | Path | None = None,
    limit: int | None = None,
    cache: Path | None = None,
    split: Split | None = None,
    table: TableOptions | None = None,
    test: str | None = None,
    **options: Any,
) -> Dataset:
    """The data set of that name in ``DATASETS``.

    Args:
        path: file or folder of "images", "npz" and "table", the pattern of the training shards of
            "shards" (``train-{0000..0146}.tar``); "cifar10" and "cifar100" are
            downloaded without.
        limit: takes that many train and test samples, in a fixed order.
        cache: folder for downloads and decoded images, see :func:`cache_folder`.
        table: how a "table" is read; default: as it is, see :class:`TableOptions`.
        test: of "shards", the pattern of the shards of test images.
        split: of "images", the split of a run (``Dataset.split``); default: one is drawn if needed.
        options: of "images" and "shards" resize and channels; of "images" label, test_share and
            split_seed, too; see :class:`ImageOptions`.

    Inputs that are mapped from a file of the cache folder can only be read: writing into them ends
    the process. Write into a copy (``.clone()``).

    Raises:
        TypeError: a path, limit or table of another kind.
        ValueError: an unknown name or option, a path that is missing or not wanted, or limit < 1.
        DataError: a file that cannot be used.

    Example:
        >>> load_dataset("digits", limit=100).train.inputs.shape
        torch.Size([100, 1, 8, 8])
    """
    load = choose("name", name, DATASETS)
    file = None if path is None else as_path("path", path).expanduser()
    folder = None if cache is None else as_path("cache", cache)
    if name in MADE and file is not None:
        raise ValueError(
            f"path must be left out for data set {name!r}, which needs no file, got {file}; "
            'load a file under the name "images", "npz" or "table"'
        )
    if name in ("images", "npz", "shards", "table") and file is None:
        raise ValueError(
            f"path must be given for data set {name!r}, got None; name the file or folder, on the "
            "command line by --data"
        )
    given = ImageOptions(**options)
    if table is not None:
        require_kind("table", table, TableOptions, "pass unitmargin.data.TableOptions(...)")
    _require_wanted(name, {"split": split, "table": table, "test": test, **options})
    own: dict[str, dict[str, Any]] = {
        "images": {"options": given, "split": split},
        "shards": {"options": given, "test": test or ""},
        "table": {"options": table},
    }
    dataset = load() if name in MADE else load(file, folder, **own.get(name, {}))
    return dataset if limit is None else dataset.take(limit)


def _require_wanted(name: str, options: Mapping[str, Any]) -> None:
    """Raise for an option that a data set has no use for."""
    for option, value in options.items():
        if value is not None and option not in OPTIONS.get(name, ()):
            owners = " and ".join(f'"{owner}"' for owner in OPTIONS if option in OPTIONS[owner])
            step = f"it is an option of {owners}"
            if name == "table" and option in TableOptions.model_fields:
                step = f"pass it as table=TableOptions({option}=...)"
            raise ValueError(
                f"{option} must be left out for data set {name!r}, got {shown(value)}; {step}"
            )
