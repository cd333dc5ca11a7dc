"""The file measurements.safetensors: what verify measured for the report to show."""

import json
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float64
from pydantic import ConfigDict
from torch import Tensor

from unitmargin.certificates.exhibits import Exhibit, Reach
from unitmargin.certificates.plane import Plane
from unitmargin.foundation.files import parse_json, require_hash
from unitmargin.foundation.options import Options
from unitmargin.foundation.tensors import read_tensors, write_tensors

PICTURES = {"original", "adversarial"}
"""Tensors of an exhibit; all else of it is text and numbers."""


class Measurements(Options):
    """What a report shows that only the network and its test samples can say.

    Attributes:
        model_sha256: of the file of the network.
        reach: of the closed form.
        input_range: smallest and largest entry of the test inputs.
        layers: kind, smallest and largest singular value of each layer.
        gradient_norms: of pairs of classes, at test samples.
        exhibits: test samples with their closest adversarial points.
        plane: for inputs that are points of the plane.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    format: Literal["unitmargin-measurements-1"] = "unitmargin-measurements-1"
    model_sha256: str
    reach: Reach
    input_range: list[float]
    layers: list[list[str | float]]
    gradient_norms: Float64[Tensor, "batch pairs"]
    exhibits: list[Exhibit]
    plane: Plane | None

    def write(self, file: Path) -> None:
        """Write tensors, and all else as strict JSON in the header."""
        content = self.model_dump(exclude={"gradient_norms", "exhibits", "plane"})
        content["exhibits"] = [exhibit.model_dump(exclude=PICTURES) for exhibit in self.exhibits]
        tensors = {"gradient_norms": self.gradient_norms, **dict(self.plane or ())}
        for name in PICTURES if self.exhibits else ():
            tensors[name] = torch.stack([getattr(exhibit, name) for exhibit in self.exhibits])
        write_tensors(file, tensors, {"measurements": json.dumps(content, allow_nan=False)})


def read_measurements(file: Path, model: Path) -> Measurements:
    """Read measurements.safetensors.

    Raises:
        ValueError: a damaged file, or measurements of another model.
    """
    tensors, header = read_tensors(file)
    try:
        content: dict[str, Any] = parse_json(header["measurements"])
        pictures = {name: tensors.pop(name) for name in PICTURES & tensors.keys()}
        content["exhibits"] = [
            row | {name: stack[number] for name, stack in pictures.items()}
            for number, row in enumerate(content["exhibits"])
        ]
        content["gradient_norms"] = tensors.pop("gradient_norms")
    except (LookupError, TypeError) as error:
        raise ValueError(f"it must hold measurements, got {error!r} from reading it") from None
    content["plane"] = Plane(**tensors) if tensors else None
    measurements = Measurements(**content)
    require_hash("model_sha256", measurements.model_sha256, model)
    return measurements
