"""What a recipe names: its data set and its untrained network."""

import torch

from unitmargin.data import Dataset, load_dataset
from unitmargin.layers.normalize import normalize_from
from unitmargin.models import Classifier, build_model
from unitmargin.runs.recipe import Recipe

STATISTICS_SAMPLES = 10_000
"""Training samples from which the input normalisation is computed."""


def open_dataset(recipe: Recipe) -> Dataset:
    """The recipe's data set, limited and up-sampled as it says."""
    dataset = load_dataset(recipe.data.name, recipe.data.path, recipe.data.limit)
    return dataset.upsampled(recipe.data.upsample)


def open_model(recipe: Recipe, dataset: Dataset) -> Classifier:
    """The recipe's untrained network, its weights drawn from the recipe's seed."""
    inputs, _ = dataset.train.batch(slice(0, STATISTICS_SAMPLES))
    normalize = normalize_from(inputs, recipe.model.normalization)
    torch.manual_seed(recipe.training.seed)
    name, options = recipe.model.name, recipe.model.options
    return build_model(name, dataset.in_shape, dataset.n_classes, normalize=normalize, **options)
