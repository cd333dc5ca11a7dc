"""Freeze: trained weights to model.safetensors, a plain network with measured deviations."""

from pathlib import Path

from unitmargin.data import ENCODING
from unitmargin.foundation.files import read_hashed
from unitmargin.frozen import save
from unitmargin.guard.onnx_model import IMAGES_FACT
from unitmargin.layers.promises import GNP
from unitmargin.models import Classifier
from unitmargin.models.freezing import DTYPES, freeze
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.linked import WEIGHTS_FACT
from unitmargin.runs.opening import recipe_model
from unitmargin.runs.recipe import Recipe
from unitmargin.runs.weights import Origin, read_weights


def freeze_run(folder: RunFolder, data: Path | None = None) -> str:
    """Freeze the trained weights of a run folder into its model file.

    The weights say all that is needed of the data, which are read only to be compared: with
    ``data``, their place.

    Raises:
        RunError: a file is missing.
        ValueError: weights of another network, training or preparation of images than the
            recipe's, weights that were replaced while they were read, or other data.
    """
    recipe = folder.recipe()
    (origin, model), sha256 = read_hashed(folder.weights_file, lambda _: _trained(folder, recipe))
    if data is not None:
        folder.dataset(data)
    classes = origin.identity.data.classes
    frozen = freeze(model, DTYPES[recipe.dtype], classes, profile=recipe.profile)
    if images := recipe.data.images():
        frozen.facts[IMAGES_FACT] = images
    frozen.facts |= origin.provenance | {WEIGHTS_FACT: sha256}
    if origin.encoding is not None:
        frozen.facts[ENCODING] = origin.encoding.model_dump(exclude_none=True)
    with folder.hold():
        save(frozen, folder.model_file)
    head = frozen.head_promise
    return (
        f"freeze: {GNP.title} {frozen.facts[GNP.fact]:.1e}, {head.title} "
        f"{frozen.facts[head.fact]:.1e}, polishing error {frozen.facts['polishing_error']:.1e}, "
        f"{len(frozen.layers)} layers -> {folder.model_file}"
    )


def _trained(folder: RunFolder, recipe: Recipe) -> tuple[Origin, Classifier]:
    """What the weights were trained as, and the network with them."""
    origin, file = folder.origin(), folder.weights_file
    origin.identity.require_options(recipe.training, file)
    origin.require_images(recipe.data.images(), file)
    model = recipe_model(recipe, origin.in_shape, len(origin.identity.data.classes))
    read_weights(file, model)
    return origin, model
