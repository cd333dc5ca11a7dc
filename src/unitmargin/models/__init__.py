"""Family: classifiers built from GNP layers and a UPD head.

A new model is one file with a :class:`Classifier` and one line here.
"""

from collections.abc import Sequence
from typing import Any

from unitmargin.models.classifier import Classifier as Classifier
from unitmargin.models.classifier import choose
from unitmargin.models.dense_ugnn import DenseUGNN as DenseUGNN
from unitmargin.models.ugnn import UGNN as UGNN

MODELS: dict[str, type[Classifier]] = {"ugnn": UGNN, "dense_ugnn": DenseUGNN}


def build_model(name: str, in_shape: Sequence[int], n_classes: int, **options: Any) -> Classifier:
    """Build a registered model; ``options`` are its keyword arguments.

    Raises:
        ValueError: unknown name or option, or a value the model refuses.

    Example:
        >>> build_model("dense_ugnn", in_shape=(2,), n_classes=2, hidden=(2, 2)).n_classes
        2
    """
    kind = choose("model", name, MODELS)
    try:
        model: Classifier = kind(in_shape=tuple(in_shape), n_classes=n_classes, **options)
    except TypeError as error:
        raise ValueError(f"model {name} does not take these options: {error}") from None
    return model
