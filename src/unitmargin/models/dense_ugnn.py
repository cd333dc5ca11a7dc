"""The fully connected Unitary-Gradient Neural Network, for vectors and small images."""

import math
from collections.abc import Sequence

from unitmargin.layers.normalize import Normalize
from unitmargin.models.classifier import Classifier, dense_layers


class DenseUGNN(Classifier):
    r"""Fully connected UGNN: orthogonal dense layers, GNP activations, a UPD head.

    Args: those of :class:`Classifier`, with an ``in_shape`` of any length, which is flattened
    (tabular data, 2-D toys, small images), and two layers as wide as it by default.
    Guarantee: as :class:`unitmargin.UGNN`.
    Source: the paper, section 4 (the layer-wise conditions alone).

    Example:
        >>> import torch
        >>> DenseUGNN(in_shape=(2,), n_classes=2, hidden=(2, 2))(torch.rand(5, 2)).shape
        torch.Size([5, 2])
    """

    def __init__(
        self,
        in_shape: Sequence[int],
        n_classes: int,
        activation: str = "maxmin",
        linear: str = "cholesky",
        head: str = "simplex",
        hidden: Sequence[int] | None = None,
        normalize: Normalize | None = None,
    ) -> None:
        flat = math.prod(in_shape)
        dense, last = dense_layers(flat, hidden, (flat, flat), activation, linear)
        super().__init__(in_shape, n_classes, dense, last, head, normalize)
