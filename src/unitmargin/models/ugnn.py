"""The paper's Unitary-Gradient Neural Networks: of convolutions, and fully connected."""

from collections.abc import Sequence

from unitmargin.foundation.numbers import require_whole
from unitmargin.layers.contract import Layer
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import MaxPool, PixelUnshuffle
from unitmargin.models.classifier import (
    Classifier,
    conv_layers,
    dense_layers,
    halvings,
    image_shape,
    input_length,
)

PAPER_DEPTH = 5
PAPER_HIDDEN = (1024, 512)


class UGNN(Classifier):
    r"""Unitary-Gradient Neural Network for images: :math:`\|\nabla(f_i - f_j)\| = 1` a.e.

    ``depth`` blocks of two orthogonal convolutions, each followed by the activation, and a
    PixelUnshuffle; then dense layers, of widths 1024 and 512 in the paper, and the UPD head.
    Channels grow by 4 a block, maps halve. Before the last PixelUnshuffle the map is max-pooled to
    2 x 2, so inputs of any multiple of the base size work (the paper's adaptive layer).

    Args (the others: :class:`Classifier`):
        activation: ``abs``, ``maxmin``, ``oplu``, ``groupsort<size>``,
            ``partial_abs<parts>``.
        depth: number of blocks; default: the paper's 5, or as many as the input allows.
        kernel_size: side of all kernels.

    Guarantee: in evaluation, pairwise gradient norms are 1 within 1e-5 in float32 where it is
    differentiable, relative to the normalised input.

    Raises:
        ValueError: a side that ``2**depth`` does not divide.

    Source: the paper, section 4.3, and the listing of its appendix.

    Example:
        >>> import torch
        >>> UGNN(in_shape=(1, 8, 8), n_classes=10)(torch.rand(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        in_shape: Sequence[int],
        n_classes: int,
        activation: str = "maxmin",
        conv: str = "cayley",
        linear: str = "cholesky",
        head: str = "simplex",
        depth: int | None = None,
        hidden: Sequence[int] | None = None,
        kernel_size: int = 3,
        normalize: Normalize | None = None,
    ) -> None:
        channels, height, width = image_shape(in_shape)
        if depth is None:
            if not (depth := halvings(height, width, PAPER_DEPTH)):
                raise ValueError(
                    f"in_shape must have even sides, got {height} x {width}; resize the images, or "
                    "take a DenseUGNN"
                )
        else:
            depth = require_whole("depth", depth, 1, "leave it out for as many as the sides halve")
        if height % 2**depth or width % 2**depth:
            raise ValueError(
                f"height and width must be divisible by 2**depth, got {height} x {width} and depth "
                f"{depth}; choose a smaller depth or resize"
            )
        layers: list[Layer] = []
        for _ in range(depth):
            for _ in range(2):
                size = (height, width)
                layers += conv_layers(conv, channels, channels, kernel_size, size, activation)
            if len(layers) == 5 * depth - 1 and max(height, width) > 2:
                layers.append(MaxPool(2))
                height = width = 2
            layers.append(PixelUnshuffle(2))
            channels, height, width = 4 * channels, height // 2, width // 2
        flat = channels * height * width
        dense, last = dense_layers(flat, hidden, PAPER_HIDDEN, activation, linear)
        super().__init__(in_shape, n_classes, [*layers, *dense], last, head, normalize)


class DenseUGNN(Classifier):
    r"""Fully connected UGNN: orthogonal dense layers, GNP activations, a UPD head.

    Args: those of :class:`Classifier`, with an ``in_shape`` of any length, which is flattened
    (tabular data, 2-D toys, small images), and two layers as wide as it by default.
    Guarantee: as :class:`UGNN`.
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
        flat = input_length(in_shape)
        dense, last = dense_layers(flat, hidden, (flat, flat), activation, linear)
        super().__init__(in_shape, n_classes, dense, last, head, normalize)
