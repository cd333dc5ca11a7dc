"""LargeConvNet: four convolutions and three dense layers."""

from collections.abc import Sequence

from unitmargin.foundation.numbers import require_whole
from unitmargin.layers.contract import Layer
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import PixelUnshuffle
from unitmargin.models.classifier import Classifier, conv_layers, dense_layers, image_shape


class LargeConvNet(Classifier):
    r"""The 1-Lipschitz network of the BCOP paper: 2.64 M parameters on 3 x 32 x 32, 10 classes.

    Convolutions c -> w (3 x 3), 4w -> w (2 x 2, behind a PixelUnshuffle), w -> 2w (3 x 3),
    8w -> 2w (2 x 2, behind a PixelUnshuffle) with w = 32, then dense layers to 512, 512 and the
    orthonormal head; the activation after each but the head.

    Args (the others: :class:`Classifier`):
        activation: MaxMin in the original. OPLU, which pairs neighbours, makes the same network up
            to an order of the channels, which the next layer absorbs.
        width: w.
        strided_kernel: side of the kernels behind a PixelUnshuffle.

    Guarantee: 1-Lipschitz, every layer semi-orthogonal. Channels grow in the first and third
    convolution, which are isometries there (J^T J = I) and not GNP: margins over the measured pair
    constants (square root of 2 for this head) are lower bounds of the distance, and the network
    is no signed distance classifier.

    Raises:
        ValueError: a side not divisible by 4, or a width or kernel below 1.

    Source: Li et al., arXiv 1911.00937, and its public code. With Cayley layers throughout and
    1 x 1 kernels behind each PixelUnshuffle it is KWLarge, ``kw_large`` among ``MODELS``: the
    network of the Cayley paper that follows Wong and Kolter, 2.41 M parameters (Trockman, Kolter,
    arXiv 2104.07167, and its public code).

    Example:
        >>> import torch
        >>> LargeConvNet((1, 8, 8), 10, width=4)(torch.rand(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        in_shape: Sequence[int],
        n_classes: int,
        activation: str = "maxmin",
        conv: str = "bcop",
        linear: str = "bjorck",
        head: str = "bjorck",
        width: int = 32,
        strided_kernel: int = 2,
        hidden: Sequence[int] | None = None,
        normalize: Normalize | None = None,
    ) -> None:
        channels, height, columns = image_shape(in_shape, 4)
        width = require_whole("width", width, 1, "use 32")
        require_whole("strided_kernel", strided_kernel, 1, "use 2")
        layers: list[Layer] = []
        for outputs in (width, 2 * width):
            layers += conv_layers(conv, channels, outputs, 3, (height, columns), activation)
            layers.append(PixelUnshuffle(2))
            height, columns = height // 2, columns // 2
            size = (height, columns)
            layers += conv_layers(conv, 4 * outputs, outputs, strided_kernel, size, activation)
            channels = outputs
        flat = channels * height * columns
        dense, last = dense_layers(flat, hidden, (512, 512), activation, linear)
        super().__init__(in_shape, n_classes, [*layers, *dense], last, head, normalize)
