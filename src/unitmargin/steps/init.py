"""Init: a look at data to a commented recipe that runs on them."""

import json
import math
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from unitmargin.certificates.exhibits import is_image
from unitmargin.data import (
    Dataset,
    MixedSizesError,
    TableOptions,
    TarShards,
    image_shards,
    load_dataset,
    not_found,
    usable,
)
from unitmargin.foundation.failures import one_line
from unitmargin.runs.certifier import are_pixels
from unitmargin.runs.opening import recipe_model
from unitmargin.runs.recipe import NAMED_BY, TABLE, parse_recipe

IMAGES = "images"

OTHER_TABLES = (".tsv", ".txt", ".json", ".jsonl", ".xlsx", ".xls", ".ods", ".arff", ".csv.gz")
"""How names of tables end that other programs write."""

IDENTIFIERS = frozenset(("id", "index", "unnamed: 0"))
"""Names of columns that number the rows and say nothing of them, in small letters."""

RESIZED = 64
"""Pixels of a side that is proposed for images of several sizes."""

SHOWN_CLASSES = 20
"""Classes whose sizes are listed."""

STEPS, MOST_EPOCHS, FEWEST_EPOCHS = 1500, 200, 5
"""A training that is proposed takes about so many steps, within these numbers of epochs."""

IMAGE_STEPS, INTERVAL = 180, 8
"""Steps of a network of layers on slices, which learns in few and takes long for each, and at how
many of them its largest weights move once, which are half of its time otherwise."""

EVALUATIONS = 5
"""How often such a network is judged in a training: each time its weights are made anew."""

ATTACKED = 64
"""Test images that are attacked: each takes hundreds of evaluations of such a network."""

SMALL_BATCH, BATCH, MANY = 32, 128, 4000
"""Samples a step, of fewer and of more than so many training samples."""

NARROW = 16
"""Entries of an input below which layers cost nothing, and depth makes up for width."""

WIDEST = 256
"""Entries of a dense layer: wider ones take long and are for those who know that they need them."""


class Line(NamedTuple):
    """A key of the recipe, its value, and what is said of it."""

    key: str
    value: object
    about: str = ""


def init_recipe(path: Path, label: str | None = None) -> str:
    """A recipe for a table, arrays, or images in a folder, archive or Parquet files, as commented
    TOML.

    What it says of the data is measured. Columns of a table that are constant, have too many
    categories or number the rows are left out, and the recipe says so.

    Raises:
        DataError: data that no recipe can read.
        ValueError: a table of another kind, a label for data that have no columns, or data that no
            network fits.

    Example:
        >>> print(init_recipe(Path("wine.csv")))  # doctest: +SKIP
    """
    in_rows = bool(image_shards(path))
    kind = IMAGES if in_rows else NAMED_BY.get(path.suffix.lower(), IMAGES)
    if not path.exists():
        raise not_found(
            path, "a table (.csv, .parquet), arrays (.npz), a folder or archive of images"
        )
    if path.is_file() and path.name.lower().endswith(OTHER_TABLES):
        raise ValueError(
            f"data must be .csv or .parquet where they are a table, got {path.name}; save it as one"
        )
    if label is not None and kind != TABLE and not in_rows:
        raise ValueError(
            f"label must be left out for {path}, which is no .csv and no .parquet file, got "
            f"{label!r}; write a table as one of them"
        )
    options = _table_options(path, label) if kind == TABLE else None
    dataset, read = _load(kind, path, options, label if in_rows else None)
    _require_entries(path, dataset)
    name = path.resolve().name.split(".")[0].strip() or kind
    sections = {
        "": _run(name, dataset),
        "data": _data(path, kind, dataset, options, read),
        "model": _model(dataset),
        "training": _training(dataset),
    }
    head = [*_about(path, dataset), "# unitmargin run FILE.toml", ""]
    text = "\n".join([*head, *(line for part in sections.items() for line in _written(*part))])
    recipe = parse_recipe(tomllib.loads(text), str(path))
    recipe_model(recipe, dataset.in_shape, dataset.n_classes)  # raises where it does not fit
    return text


def _run(name: str, dataset: Dataset) -> list[Line]:
    lines = [Line("name", name, f"of the run folder, runs/{name}")]
    attacked = Line("verify_samples", ATTACKED, "test samples that are attacked")
    return [*lines, *([attacked] if _is_mixing(dataset) else [])]


def _load(
    kind: str, path: Path, options: TableOptions | None, label: str | None
) -> tuple[Dataset, list[Line]]:
    """The data set, and how images are read: resized if they have several sizes."""
    named: dict[str, Any] = {} if label is None else {"label": label}
    lines = [Line("label", label, "the column of the classes")] if named else []
    try:
        return load_dataset(kind, path, table=options, **named), lines
    except MixedSizesError:
        about = "images have several sizes: the middle square of each gets that many pixels a side"
        lines.append(Line("resize", RESIZED, about))
        return load_dataset(kind, path, resize=RESIZED, **named), lines


def _table_options(path: Path, label: str | None) -> TableOptions:
    found, names = usable(path, TableOptions(label=label, scale="features"))
    numbering = [name for name in names if name.lower() in IDENTIFIERS]
    if len(numbering) in (0, len(names)):
        return found
    return usable(path, found.changed(ignore=[*found.ignore, *numbering]))[0]


def _require_entries(path: Path, dataset: Dataset) -> None:
    """Raise for inputs of so few entries that no network tells all classes apart."""
    needed, entries = dataset.n_classes - 1, math.prod(dataset.in_shape)
    if entries >= needed:
        return
    what, step = "an input must have", "add entries of zeros, which change no distance"
    if dataset.encoding is not None:
        what = "the columns that are kept must give"
        step = (
            "add columns of numbers, or of zeros, which change no distance, and write a recipe "
            'with scale = "units" by hand'
        )
    raise ValueError(
        f"{path}: {what} at least {needed} entries for {dataset.n_classes} classes, got {entries}; "
        f"{step}"
    )


def _about(path: Path, dataset: Dataset) -> list[str]:
    train, test = (
        part.labels.bincount(minlength=dataset.n_classes).tolist()
        for part in (dataset.train, dataset.test)
    )
    shape = " x ".join(map(str, dataset.in_shape))
    what = (
        f"images of {shape} (channels, height, width)"
        if is_image(dataset.in_shape)
        else f"inputs of {shape} numbers"
    )
    lines = [
        f"# {one_line(path.name)}: {len(dataset.train)} {what} to train, {len(dataset.test)} to "
        f"test, in {dataset.n_classes} classes:"
    ]
    for name, *counts in list(zip(dataset.classes, train, test, strict=True))[:SHOWN_CLASSES]:
        lines.append(f"#   {one_line(name)}: {counts[0]} to train, {counts[1]} to test")
    if dataset.n_classes > SHOWN_CLASSES:
        lines.append(f"#   and {dataset.n_classes - SHOWN_CLASSES} more")
    return lines


def _data(
    path: Path, kind: str, dataset: Dataset, options: TableOptions | None, read: list[Line]
) -> list[Line]:
    encoding = dataset.encoding
    if options is None or encoding is None:
        pixels = are_pixels(dataset.in_shape, dataset.train.domain)
        units = "pixels in [0, 1]" if pixels else "the units of the numbers in the file"
        return [Line("name", kind), Line("path", str(path), f"radii are in {units}"), *read]
    share, seed = options.choice()
    words = [f"{column.name} ({column.width})" for column in encoding.columns if column.categories]
    about = f"; a change of category has the length 1: {', '.join(words)}" if words else ""
    lines = [
        Line("name", kind),
        Line("path", str(path)),
        Line("label", encoding.label, "the column of the classes"),
        Line("test_share", share, 'of each class is kept for the test; or test = "OTHER.csv"'),
        Line("split_seed", seed, "of that split, which depends on it and on the rows alone"),
        Line("scale", "features", f"radii are in standard deviations of the training rows{about}"),
    ]
    left_out = "columns that are constant, number the rows or have too many categories"
    return lines + ([Line("ignore", options.ignore, left_out)] if options.ignore else [])


def _model(dataset: Dataset) -> list[Line]:
    flat = math.prod(dataset.in_shape)
    normal = Line("normalization", "centre", "radii stay in the units of the data")
    if dataset.encoding is not None:
        normal = Line("normalization", "none", "the scale above has centred the columns")
    if _is_mixing(dataset):
        return [Line("name", "mixing_ugnn", "its layers follow from the size"), normal]
    width = min(flat, max(WIDEST, dataset.n_classes - 1))
    depth = 8 if flat < NARROW else 4
    fits = f"{depth} layers; none may be wider than the one before it, the first than the {flat} "
    return [
        Line("name", "dense_ugnn"),
        normal,
        Line("activation", "abs"),
        Line("linear", "manifold"),
        Line("head", "manifold"),
        Line("hidden", [width] * depth, f"{fits}numbers of an input"),
    ]


def _is_mixing(dataset: Dataset) -> bool:
    """Whether layers on slices are proposed: for images that are too large for dense ones."""
    shape = dataset.in_shape
    large = dataset.encoding is None and is_image(shape) and math.prod(shape) > WIDEST
    return large and shape[1] % 2 == shape[2] % 2 == 0


def _training(dataset: Dataset) -> list[Line]:
    count, mixing = len(dataset.train), _is_mixing(dataset)
    batch = SMALL_BATCH if count < MANY else BATCH
    steps = IMAGE_STEPS if mixing else STEPS
    epochs = min(MOST_EPOCHS, max(FEWEST_EPOCHS, math.ceil(steps * batch / count)))
    offset = _offset(dataset)
    of_mixing = [
        Line("interval", INTERVAL, "large weights move at each of so many steps, by as much more"),
        Line("evaluate_every", max(1, epochs // EVALUATIONS), "epochs"),
    ]
    return [
        Line("epochs", epochs),
        Line("batch_size", batch),
        Line("learning_rate", 5e-3),
        Line("schedule", "linear"),
        Line("loss", "offset_cross_entropy"),
        Line("offset", offset, "margin asked for, in the units of radii: more is more robust"),
        Line("temperature", offset / 2, "less is more accurate on the training samples"),
        *(of_mixing if mixing else []),
        Line("seed", 0),
    ]


def _offset(dataset: Dataset) -> float:
    """Half the spread of a number of the inputs, which is 1 for standard deviations."""
    if dataset.encoding is not None or isinstance(dataset.train, TarShards):
        return 0.5
    inputs, _ = dataset.train.batch(dataset.train.spread(1000))
    spread = float(inputs.double().std(0, correction=0).square().mean().sqrt())
    return float(f"{0.5 * spread:.1g}") or 0.5


def _written(section: str, lines: list[Line]) -> list[str]:
    texts = [f"{line.key} = {json.dumps(line.value, ensure_ascii=False)}" for line in lines]
    width = min(48, max(map(len, texts)))
    header = [f"[{section}]"] if section else []
    body = [
        f"{text:<{width}}  # {one_line(line.about)}" if line.about else text
        for text, line in zip(texts, lines, strict=True)
    ]
    return [*header, *body, ""]
