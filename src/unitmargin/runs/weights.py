"""The file weights.safetensors: trained parameters, and what they were trained as."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import PositiveInt

from unitmargin.data import Dataset, Encoding
from unitmargin.foundation.failures import one_line
from unitmargin.foundation.files import parse_json
from unitmargin.foundation.options import Options
from unitmargin.foundation.tensors import read_header, read_tensors, write_tensors
from unitmargin.models import Classifier, describe_network
from unitmargin.runs.provenance import provenance
from unitmargin.training.identity import Identity, identify
from unitmargin.training.options import TrainingOptions

ORIGIN = "origin"
"""Entry of the header that holds all but the tensors."""


class Origin(Options):
    """What weights were trained as, where and with what.

    Attributes:
        identity: data, network and options.
        in_shape: of an input.
        provenance: hardware, torch and commit of the training.
        encoding: what became of the columns of a table.
        images: how images were prepared; see :class:`unitmargin.data.ImageOptions`. None: weights
            of a version that did not write it.
    """

    format: Literal["unitmargin-weights-1"] = "unitmargin-weights-1"
    identity: Identity
    in_shape: list[PositiveInt]
    provenance: dict[str, str]
    encoding: Encoding | None = None
    images: dict[str, Any] | None = None

    def require_images(self, images: Mapping[str, Any], file: Path) -> None:
        """Raise a ValueError unless ``file`` was trained on images that were prepared so."""
        if self.images is not None and self.images != images:
            raise ValueError(
                f"{file} was trained on images prepared with {_words(self.images)}, not "
                f"{_words(images)}; restore the recipe, or train in another folder"
            )


def _words(images: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in images.items()) or "nothing"


def origin_of(
    model: Classifier,
    dataset: Dataset,
    options: TrainingOptions,
    images: Mapping[str, Any] | None = None,
    products: str = "",
) -> Origin:
    """What a model is trained as, with products of that type. Cost: one hash of all samples."""
    identity = identify(model, dataset.train, dataset.test, options, dataset.classes)
    return Origin(
        identity=identity,
        in_shape=list(dataset.in_shape),
        provenance=provenance(products),
        encoding=dataset.encoding,
        images=dict(images or {}),
    )


def write_weights(file: Path, model: Classifier, origin: Origin) -> None:
    """Write weights.safetensors."""
    write_tensors(file, model.state_dict(), {ORIGIN: json.dumps(origin.model_dump())})


def read_origin(file: Path) -> Origin:
    """What weights.safetensors was trained as.

    Raises:
        ValueError: a damaged file, or one of another version.
    """
    content = parse_json(read_header(file).get(ORIGIN, "{}"))
    return Origin(**content if isinstance(content, dict) else {})


def read_weights(file: Path, model: Classifier) -> None:
    """Load the weights into a model.

    Raises:
        ValueError: a damaged file, or weights of another network.
    """
    read_origin(file).identity.require_network(describe_network(model), file)
    tensors, _ = read_tensors(file)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = one_line(str(error))
        raise ValueError(f"{file} does not fit the recipe's model: {reason}; train again") from None
