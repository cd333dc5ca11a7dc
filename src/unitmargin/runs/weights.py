"""The file weights.safetensors: trained parameters, and what they were trained as."""

import json
from pathlib import Path
from typing import Literal

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
    """

    format: Literal["unitmargin-weights-1"] = "unitmargin-weights-1"
    identity: Identity
    in_shape: list[PositiveInt]
    provenance: dict[str, str]
    encoding: Encoding | None = None


def origin_of(model: Classifier, dataset: Dataset, options: TrainingOptions) -> Origin:
    """What a model is trained as. Cost: one hash of all samples."""
    identity = identify(model, dataset.train, dataset.test, options, dataset.classes)
    return Origin(
        identity=identity,
        in_shape=list(dataset.in_shape),
        provenance=provenance(),
        encoding=dataset.encoding,
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
