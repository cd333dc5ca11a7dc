"""The file measurements.safetensors: what verify measured for the report to show."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float64
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from unitmargin.certificates.exhibits import Exhibit, Reach
from unitmargin.certificates.plane import Plane
from unitmargin.foundation.choice import require_choice
from unitmargin.foundation.files import file_sha256, parse_json, write_aside
from unitmargin.runs.requirements import require_hash

FORMAT = "unitmargin-measurements-1"

PICTURES = ("original", "adversarial")
"""Tensors of an exhibit; all else of it is text and numbers."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """What a report shows that only the network and its test samples can say.

    Attributes:
        gradient_norms: of all pairs of classes, at test samples.
        reach: of the closed form.
        input_range: smallest and largest entry of the test inputs.
        layers: kind, smallest and largest singular value of each layer.
        exhibits: test samples with their closest adversarial points.
        plane: for inputs that are points of the plane.
    """

    gradient_norms: Float64[Tensor, "batch pairs"]
    reach: Reach
    input_range: tuple[float, float]
    layers: tuple[tuple[str, float, float], ...]
    exhibits: tuple[Exhibit, ...]
    plane: Plane | None


def write_measurements(file: Path, measurements: Measurements, model: Path) -> None:
    """Write tensors, and all else as strict JSON in the header; the file appears whole."""
    exhibits = [vars(exhibit) for exhibit in measurements.exhibits]
    tensors = {"gradient_norms": measurements.gradient_norms}
    if exhibits:
        tensors |= {name: torch.stack([row[name] for row in exhibits]) for name in PICTURES}
    if measurements.plane is not None:
        tensors |= {f"plane.{name}": tensor for name, tensor in vars(measurements.plane).items()}
    content = {
        "format": FORMAT,
        "model_sha256": file_sha256(model),
        "reach": asdict(measurements.reach),
        "input_range": measurements.input_range,
        "layers": measurements.layers,
        "exhibits": [
            {name: value for name, value in row.items() if name not in PICTURES} for row in exhibits
        ],
    }
    header = {"measurements": json.dumps(content, allow_nan=False)}
    whole = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    with write_aside(file) as aside:
        save_file(whole, str(aside), metadata=header)


def read_measurements(file: Path, model: Path) -> Measurements:
    """Read what :func:`write_measurements` wrote.

    Raises:
        ValueError: a damaged file, or measurements of another model; the message says which.
    """
    try:
        with safe_open(str(file), framework="pt") as opened:
            header = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        content = parse_json(header["measurements"])
        require_choice("format", content["format"], (FORMAT,))
        require_hash("model_sha256", content["model_sha256"], model)
        return _rebuild(content, tensors)
    except (SafetensorError, LookupError, TypeError) as error:
        raise ValueError(f"it must hold measurements, got {error!r} from reading it") from None


def _rebuild(content: Mapping[str, Any], tensors: Mapping[str, Any]) -> Measurements:
    plane = {name[6:]: tensor for name, tensor in tensors.items() if name.startswith("plane.")}
    low, high = content["input_range"]
    exhibits = [
        row | {name: tensors[name][number] for name in PICTURES}
        for number, row in enumerate(content["exhibits"])
    ]
    return Measurements(
        gradient_norms=tensors["gradient_norms"],
        reach=Reach(**content["reach"]),
        input_range=(low, high),
        layers=tuple((kind, low, high) for kind, low, high in content["layers"]),
        exhibits=tuple(Exhibit(**row) for row in exhibits),
        plane=Plane(**plane) if plane else None,
    )
