"""LipConvNet-5, -10, -15, -20: skew orthogonal convolutions alone."""

from collections.abc import Sequence

from unitmargin.foundation.numbers import require_whole
from unitmargin.layers.contract import Layer
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten, PixelUnshuffle
from unitmargin.models.classifier import Classifier, conv_layers, halvings, image_shape


class LipConvNet(Classifier):
    r"""The 1-Lipschitz network of the SOC paper: 17.7 M parameters on 3 x 32 x 32.

    Five blocks, or as many as the sides can be halved, each a PixelUnshuffle and a convolution to
    2w, 4w, ..., 32w channels with w = 32, 3 x 3 and in the last block 1 x 1; then the orthonormal
    head on the flattened features. The deeper ones put more 3 x 3 convolutions in front of each
    PixelUnshuffle. The activation, MaxMin in the original, follows every convolution.

    Args (the others: :class:`Classifier`):
        head: ``"lln"`` is the original's last-layer normalisation.
        width: w.
        convolutions: of a block, all but the last at the size of its input; LipConvNet-5, -10, -15
            and -20 have 1, 2, 3 and 4.

    Guarantee: 1-Lipschitz, every layer semi-orthogonal in evaluation (see
    :class:`unitmargin.orthogonal.skew.SkewConv2d` for training). The first convolution grows where
    its 4 channels an input channel are fewer than 2w, so the network is not GNP and no signed
    distance classifier.

    Raises:
        ValueError: an odd side, or a width or number of convolutions below 1.

    Source: Singla, Feizi, arXiv 2105.11417, and its public code, with circular padding.

    Example:
        >>> import torch
        >>> LipConvNet((1, 8, 8), 10, width=4)(torch.rand(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        in_shape: Sequence[int],
        n_classes: int,
        activation: str = "maxmin",
        conv: str = "skew",
        head: str = "skew",
        width: int = 32,
        convolutions: int = 1,
        normalize: Normalize | None = None,
    ) -> None:
        channels, height, columns = image_shape(in_shape)
        width = require_whole("width", width, 1, "use 32")
        convolutions = require_whole("convolutions", convolutions, 1, "use 1, 2, 3 or 4")
        depth = halvings(height, columns, 5)
        if depth == 0:
            raise ValueError(
                f"height and width must be even, got {height} x {columns}; resize or crop the input"
            )
        layers: list[Layer] = []
        for block in range(depth):
            planes = width * 2**block
            for _ in range(convolutions - 1):
                layers += conv_layers(conv, channels, planes, 3, (height, columns), activation)
                channels = planes
            layers.append(PixelUnshuffle(2))
            height, columns = height // 2, columns // 2
            kernel, size = 1 if block == depth - 1 else 3, (height, columns)
            layers += conv_layers(conv, 4 * channels, 2 * planes, kernel, size, activation)
            channels = 2 * planes
        flat = channels * height * columns
        super().__init__(in_shape, n_classes, [*layers, Flatten()], flat, head, normalize)
