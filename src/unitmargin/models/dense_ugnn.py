"""The fully connected Unitary-Gradient Neural Network, for vectors and small images."""

import math
from collections.abc import Sequence

from unitmargin.layers.normalize import Normalize
from unitmargin.models.classifier import Classifier, dense_layers


class DenseUGNN(Classifier):
    r"""Fully connected UGNN: orthogonal dense layers, GNP activations, a UPD head.

    Args:
        in_shape: any shape; it is flattened (tabular data, 2-D toys, small images).
        n_classes: at least 2.
        activation, linear, head: registered names; Abs on odd widths.
        hidden: widths, never growing; default: two layers as wide as the input.
        normalize: input normalisation; default: none.

    Guarantee: as :class:`unitmargin.UGNN`.

    Raises:
        ValueError: a growing width, an unknown name.

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
        widths = (flat, flat) if hidden is None else hidden
        dense, last = dense_layers(flat, widths, activation, linear)
        super().__init__(in_shape, n_classes, dense, last, head, normalize)
