"""Freeze: trained weights to model.safetensors, a plain network with measured deviations."""

from unitmargin.frozen import save
from unitmargin.layers.promises import GNP
from unitmargin.models.freezing import DTYPES, freeze
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.opening import open_dataset, open_model
from unitmargin.training.checkpoint import read_weights


def freeze_run(folder: RunFolder) -> str:
    """Freeze the trained weights of a run folder into its model file."""
    recipe = folder.recipe()
    dataset = open_dataset(recipe)
    model = open_model(recipe, dataset)
    origin = read_weights(folder.require(folder.weights_file, "train RECIPE"), model)
    frozen = freeze(model, DTYPES[recipe.dtype], dataset.classes)
    frozen.facts |= origin
    save(frozen, folder.model_file)
    head = frozen.head_promise
    return (
        f"freeze: {GNP.title} {frozen.facts[GNP.fact]:.1e}, {head.title} "
        f"{frozen.facts[head.fact]:.1e}, polishing error {frozen.facts['polishing_error']:.1e}, "
        f"{len(frozen.layers)} layers -> {folder.model_file}"
    )
