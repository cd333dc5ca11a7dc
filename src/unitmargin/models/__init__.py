"""Family: classifiers of orthogonal layers: unitary-gradient networks and 1-Lipschitz peers.

A new model is one file with a :class:`Classifier` and one line here.
"""

from collections.abc import Sequence
from typing import Any

from unitmargin.models.classifier import Classifier as Classifier
from unitmargin.models.classifier import choose
from unitmargin.models.classifier import fixed_network as fixed_network
from unitmargin.models.classifier import frozen_layer as frozen_layer
from unitmargin.models.dense_ugnn import DenseUGNN as DenseUGNN
from unitmargin.models.large_convnet import KWLarge as KWLarge
from unitmargin.models.large_convnet import LargeConvNet as LargeConvNet
from unitmargin.models.lip_convnet import LipConvNet5 as LipConvNet5
from unitmargin.models.lip_convnet import LipConvNet10 as LipConvNet10
from unitmargin.models.lip_convnet import LipConvNet15 as LipConvNet15
from unitmargin.models.lip_convnet import LipConvNet20 as LipConvNet20
from unitmargin.models.residual import ConvexResidual as ConvexResidual
from unitmargin.models.resnet9 import ResNet9 as ResNet9
from unitmargin.models.ugnn import UGNN as UGNN

MODELS: dict[str, type[Classifier]] = {
    "ugnn": UGNN,
    "dense_ugnn": DenseUGNN,
    "large_convnet": LargeConvNet,
    "kw_large": KWLarge,
    "resnet9": ResNet9,
    "lip_convnet5": LipConvNet5,
    "lip_convnet10": LipConvNet10,
    "lip_convnet15": LipConvNet15,
    "lip_convnet20": LipConvNet20,
}


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
