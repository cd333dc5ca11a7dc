"""What a network is, in words: the kind, the settings and the tensors of each of its layers."""

import re
from typing import Any

from unitmargin.layers.contract import FixedLayer, Layer, TrainableLayer
from unitmargin.models.classifier import Classifier


def describe_network(model: Classifier) -> dict[str, str]:
    """The kind, the settings and the shapes of each layer, by its name; and the input's shape.

    Two models with equal descriptions compute the same function of the same state dictionary.

    Example:
        >>> from unitmargin.models.ugnn import DenseUGNN
        >>> describe_network(DenseUGNN((6,), 3, hidden=(4,)))["features.1"]
        'CholeskyLinear raw 4x6 bias 4'
    """
    layers = [*model.named_layers(), ("head", model.head)]
    described = {name: _describe_layer(layer) for name, layer in layers}
    return {"input": _shape(model.in_shape), **described}


def _describe_layer(layer: Layer) -> str:
    words = []
    for _, part in layer.named_modules(remove_duplicate=False):
        if isinstance(part, Layer):
            words.append(type(part).__name__)
        if isinstance(part, FixedLayer):
            words += _listed(part.configuration())
        elif isinstance(part, TrainableLayer) and (settings := part.settings()):
            words.append(f"[{', '.join(_listed(settings))}]")
    tensors = layer.state_dict().items()
    return " ".join([*words, *(f"{name} {_shape(tensor.shape)}" for name, tensor in tensors)])


def _listed(settings: dict[str, Any]) -> list[str]:
    return [f"{key} {value}" for key, value in settings.items()]


def without_settings(words: str) -> str:
    """The words of a layer without the settings of trainable layers.

    Example:
        >>> without_settings("OrthogonalMixing [absolute 1] raw 1x4x4 bias 1x4")
        'OrthogonalMixing raw 1x4x4 bias 1x4'
    """
    return re.sub(r" \[[^]]*\]", "", words)


def _shape(lengths: tuple[int, ...]) -> str:
    return "x".join(map(str, lengths)) or "1"
