"""What a recipe names: its data set and its untrained network."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from unitmargin.data import Dataset, Samples, Split, TarShards, load_dataset
from unitmargin.frozen import LARGEST
from unitmargin.layers.normalize import Normalize, normalize_from
from unitmargin.models import Classifier, build_model
from unitmargin.runs.recipe import SHARDS, TABLE, Recipe

BATCH_NUMBERS = 2**20
"""Numbers of a batch from which statistics are computed: 8 MB in float64."""


def open_dataset(recipe: Recipe, split: Split | None = None) -> Dataset:
    """The recipe's data set, limited and up-sampled as it says; split as a run has it."""
    data = recipe.data
    table, options = (data.table(), {}) if data.name == TABLE else (None, data.given())
    if data.name == SHARDS:
        options["test"] = data.test
    dataset = load_dataset(data.name, data.path, data.limit, split=split, table=table, **options)
    return dataset.upsampled(data.upsample)


def open_model(recipe: Recipe, dataset: Dataset) -> Classifier:
    """The recipe's untrained network, its weights drawn from the recipe's seed.

    Raises:
        ValueError: options that do not fit the data, or data whose mean or deviation no model file
            may hold.
    """
    channels = dataset.in_shape[0]
    normalize = normalize_from(_inputs(dataset.train), channels, recipe.model.normalization)
    _require_storable(normalize)
    torch.manual_seed(recipe.training.seed)
    return recipe_model(recipe, dataset.in_shape, dataset.n_classes, normalize)


def _require_storable(normalize: Normalize) -> None:
    """Raise for statistics that the file of the trained network would be refused for."""
    for what, numbers in (("mean", normalize.mean), ("deviation", normalize.std)):
        largest, place = (float(part) for part in numbers.abs().max(0))
        if largest > LARGEST:
            raise ValueError(
                f"normalization must have numbers up to {LARGEST:g}, which a model file may hold, "
                f"got the {what} {float(numbers[int(place)]):g} of channel {int(place)}, counted "
                "from 0; write the column in a larger unit"
            )


def recipe_model(
    recipe: Recipe, in_shape: Sequence[int], n_classes: int, normalize: Normalize | None = None
) -> Classifier:
    """The recipe's network, its weights drawn from torch's generator as it stands."""
    name, options = recipe.model.name, recipe.model.options
    return build_model(name, in_shape, n_classes, normalize=normalize, **options)


def _inputs(samples: Samples | TarShards) -> Iterator[Tensor]:
    """The inputs in batches of bounded size, for statistics of each channel."""
    if isinstance(samples, TarShards):
        yield from samples.every_image()
        return
    # Pixels that are all repeated equally often have the statistics of the pixels themselves.
    stored = replace(samples, upsample=1)
    size = max(1, BATCH_NUMBERS // math.prod(stored.in_shape))
    for start in range(0, len(stored), size):
        yield stored.batch(slice(start, start + size))[0]
