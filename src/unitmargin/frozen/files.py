"""The file of a frozen network: safetensors with a JSON header, never pickle."""

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from unitmargin.fixed import FixedLayer
from unitmargin.frozen.network import FrozenNetwork
from unitmargin.frozen.registry import FROZEN_LAYERS

FORMAT = "unitmargin-frozen-1"


class ModelFileError(ValueError):
    """A model file that cannot be trusted: damaged, of another format, or inconsistent."""


def save(frozen: FrozenNetwork, path: str | Path) -> None:
    """Write a frozen network to one safetensors file; the file appears whole or not at all.

    The header holds the layers' configurations, the input shape, the class names and the facts
    recorded at freezing, as JSON. See :func:`load`.
    """
    path = Path(path)
    tensors: dict[str, Tensor] = {}
    layers = []
    for index, layer in enumerate(frozen.layers):
        assert isinstance(layer, FixedLayer)  # the constructor takes nothing else
        layers.append({"kind": layer.kind, "configuration": layer.configuration()})
        for name, tensor in layer.state_dict().items():
            tensors[f"{index}.{name}"] = tensor.detach().cpu().contiguous()
    header = {
        "format": FORMAT,
        "layers": json.dumps(layers),
        "in_shape": json.dumps(list(frozen.in_shape)),
        "classes": json.dumps(list(frozen.classes)),
        "facts": json.dumps(frozen.facts),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".partial")
    save_file(tensors, str(aside), metadata=header)
    os.replace(aside, path)


def load(path: str | Path) -> FrozenNetwork:
    """Read a frozen network; every certificate constant is measured again from its weights.

    Raises:
        FileNotFoundError: no such file.
        ModelFileError: damaged or truncated, another format, an unknown layer, missing or surplus
            tensors, or a weight that is not finite.

    Example:
        >>> frozen = load("runs/digits/model.safetensors")  # doctest: +SKIP
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no model file at {path}; run `unitmargin freeze` first")
    try:
        with safe_open(str(path), framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ModelFileError(f"{path} is damaged or truncated ({error}); freeze it again") from None
    if header.get("format") != FORMAT:
        raise ModelFileError(
            f"{path} must have format {FORMAT}, got {header.get('format')!r}; freeze the network "
            "again with this version"
        )
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise ModelFileError(f"tensor {name} of {path} is not finite; freeze it again")
    try:
        return _rebuild(header, tensors)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is inconsistent: {error}; freeze it again") from None


def _rebuild(header: dict[str, str], tensors: dict[str, Tensor]) -> FrozenNetwork:
    layers: list[FixedLayer] = []
    specifications: list[dict[str, Any]] = json.loads(header["layers"])
    used: set[str] = set()
    for index, specification in enumerate(specifications):
        kind = specification["kind"]
        if kind not in FROZEN_LAYERS:
            raise ValueError(f"unknown layer kind {kind!r}, known: {', '.join(FROZEN_LAYERS)}")
        prefix = f"{index}."
        own = {name for name in tensors if name.startswith(prefix)}
        used |= own
        state = {name.removeprefix(prefix): tensors[name] for name in own}
        layers.append(FROZEN_LAYERS[kind].rebuild(specification["configuration"], state))
    if used != set(tensors):
        raise ValueError(f"surplus tensors {sorted(set(tensors) - used)}")
    return FrozenNetwork(
        layers,
        tuple(json.loads(header["in_shape"])),
        json.loads(header["classes"]),
        json.loads(header["facts"]),
    )
