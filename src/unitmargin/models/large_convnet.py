"""LargeConvNet: four convolutions and three dense layers."""

from collections.abc import Sequence

from unitmargin.layers.activations import build_activation
from unitmargin.layers.contract import Layer
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import PixelUnshuffle
from unitmargin.models.classifier import Classifier, build_conv, dense_layers
from unitmargin.models.shapes import image_shape_multiple

HIDDEN = (512, 512)


class LargeConvNet(Classifier):
    r"""The 1-Lipschitz network of the BCOP paper: 2.64 M parameters on 3 x 32 x 32, 10 classes.

    Convolutions c -> w (3 x 3), 4w -> w (2 x 2, behind a PixelUnshuffle), w -> 2w (3 x 3),
    8w -> 2w (2 x 2, behind a PixelUnshuffle) with w = 32, then dense layers to 512, 512 and the
    orthonormal head; the activation after each but the head.

    Args:
        in_shape: ``(channels, height, width)``, both sides divisible by 4.
        n_classes: at least 2.
        activation: ``maxmin`` (pairs channel i with i + c/2, as the original; pairing
            neighbours, as ``oplu`` does, is the same network up to an order of the channels, which
            the next layer absorbs) or ``abs``, or any registered one.
        conv, linear, head: registered names.
        width: w.
        strided_kernel: side of the kernels behind a PixelUnshuffle.
        hidden: dense widths; default: (512, 512), or as wide as the flattened features allow.
        normalize: input normalisation; default: none.

    Guarantee: 1-Lipschitz, every layer semi-orthogonal. Channels grow in the first and third
    convolution, which are isometries there (J^T J = I) and not GNP: margins over the measured pair
    constants (square root of 2 for this head) are lower bounds of the distance, and the network
    is no signed distance classifier.

    Raises:
        ValueError: a side not divisible by 4, an unknown name.

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
        channels, height, rows = image_shape_multiple(in_shape, 4)
        layers: list[Layer] = []
        for outputs in (width, 2 * width):
            layers += [
                build_conv(conv, channels, 3, (height, rows), outputs),
                build_activation(activation, outputs),
                PixelUnshuffle(2),
            ]
            height, rows = height // 2, rows // 2
            layers += [
                build_conv(conv, 4 * outputs, strided_kernel, (height, rows), outputs),
                build_activation(activation, outputs),
            ]
            channels = outputs
        flat = channels * height * rows
        widths = tuple(min(size, flat) for size in HIDDEN) if hidden is None else hidden
        dense, last = dense_layers(flat, widths, activation, linear)
        super().__init__(in_shape, n_classes, [*layers, *dense], last, head, normalize)
