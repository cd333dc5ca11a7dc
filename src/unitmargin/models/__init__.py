"""Family: classifiers of orthogonal layers: unitary-gradient networks and 1-Lipschitz peers.

A new model is one file with a :class:`Classifier` and one line here; a variant of one is a line.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from unitmargin.foundation.choice import choose
from unitmargin.foundation.numbers import require_shape, require_whole
from unitmargin.models.classifier import Classifier, DearEvaluationWarning
from unitmargin.models.description import describe_network, without_settings
from unitmargin.models.freezing import fixed_network, freeze
from unitmargin.models.large_convnet import LargeConvNet
from unitmargin.models.lip_convnet import LipConvNet
from unitmargin.models.mixing_ugnn import MixingUGNN
from unitmargin.models.resnet9 import ConvexResidual, ResNet9
from unitmargin.models.ugnn import UGNN, DenseUGNN

__all__ = [
    "MODELS", "UGNN", "Classifier", "ConvexResidual", "DearEvaluationWarning", "DenseUGNN",
    "LargeConvNet", "LipConvNet", "MixingUGNN", "ResNet9", "build_model", "describe_network",
    "fixed_network", "freeze", "freezing", "plans", "ugnn", "without_settings",
]  # fmt: skip

MODELS: dict[str, Callable[..., Classifier]] = {
    "ugnn": UGNN,
    "dense_ugnn": DenseUGNN,
    "mixing_ugnn": MixingUGNN,
    "large_convnet": LargeConvNet,
    "kw_large": partial(
        LargeConvNet, conv="cayley_scaled", linear="cayley", head="cayley", strided_kernel=1
    ),
    "resnet9": ResNet9,
    "lip_convnet5": LipConvNet,
    "lip_convnet10": partial(LipConvNet, convolutions=2),
    "lip_convnet15": partial(LipConvNet, convolutions=3),
    "lip_convnet20": partial(LipConvNet, convolutions=4),
}
"""Networks by name; those that differ by settings alone are one class."""


def build_model(name: str, in_shape: Sequence[int], n_classes: int, **options: Any) -> Classifier:
    """Build a registered model; ``options`` are its keyword arguments.

    Raises:
        TypeError: ``in_shape`` or ``n_classes`` that are no whole numbers.
        ValueError: unknown name or option, or a value the model refuses.

    Example:
        >>> build_model("dense_ugnn", in_shape=(2,), n_classes=2, hidden=(2, 2)).n_classes
        2
    """
    kind, shape = choose("model", name, MODELS), require_shape("in_shape", in_shape)
    classes = require_whole("n_classes", n_classes, 2, "pass the number of classes")
    try:
        inspect.signature(kind).bind(in_shape=shape, n_classes=classes, **options)
    except TypeError as error:
        raise ValueError(f"model {name} does not take these options: {error}") from None
    try:
        return kind(in_shape=shape, n_classes=classes, **options)
    except TypeError as error:
        raise ValueError(f"model {name}: {error}") from error
