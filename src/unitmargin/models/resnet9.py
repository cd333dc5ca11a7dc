"""ResNet9: eight Cayley convolutions, two convex residuals."""

from collections.abc import Callable, Sequence

from unitmargin.layers.activations import build_activation
from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.contract import Layer
from unitmargin.layers.normalize import Normalize
from unitmargin.models.classifier import Classifier, build_conv, dense_layers
from unitmargin.models.residual import ConvexResidual
from unitmargin.models.shapes import image_shape_multiple

HIDDEN = 512


class ResNet9(Classifier):
    r"""The 1-Lipschitz residual network of the Cayley paper: 7.62 M parameters on 3 x 32 x 32.

    3 x 3 convolutions c -> w, w -> 2w, pool, a residual of two 2w -> 2w, 2w -> 4w, pool,
    4w -> 8w, pool, a residual of two 8w -> 8w, pool, with w = 64; a dense layer to 512 and the
    orthonormal head. The activation follows every layer but the head; pools are
    :class:`unitmargin.layers.average_pool.ScaledAveragePool`, residuals convex combinations.

    Args:
        in_shape: ``(channels, height, width)``, both sides divisible by 16.
        n_classes: at least 2.
        activation: ``maxmin`` (pairs channel i with i + c/2, as the original), ``abs``, or any
            registered one.
        conv, linear, head: registered names.
        width: w.
        hidden: dense widths; default: (512,), or as wide as the flattened features.
        normalize: input normalisation; default: none (the original subtracts the mean).

    Guarantee: 1-Lipschitz. Not GNP, because channels grow and convex residuals shrink gradients:
    certificates are lower bounds and the network is no signed distance classifier.

    Raises:
        ValueError: a side not divisible by 16, an unknown name.

    Source: Trockman, Kolter, arXiv 2104.07167, and its public code.

    Example:
        >>> import torch
        >>> ResNet9((1, 16, 16), 10, width=4)(torch.rand(2, 1, 16, 16)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        in_shape: Sequence[int],
        n_classes: int,
        activation: str = "maxmin",
        conv: str = "cayley_scaled",
        linear: str = "cayley",
        head: str = "cayley",
        width: int = 64,
        hidden: Sequence[int] | None = None,
        normalize: Normalize | None = None,
    ) -> None:
        channels, height, columns = image_shape_multiple(in_shape, 16)

        def block(inputs: int, outputs: int, halvings: int) -> list[Layer]:
            size = (height >> halvings, columns >> halvings)
            return [
                build_conv(conv, inputs, 3, size, outputs),
                build_activation(activation, outputs),
            ]

        layers = stages(block, channels, width)
        flat = 8 * width * (height // 16) * (columns // 16)
        widths = (min(HIDDEN, flat),) if hidden is None else hidden
        dense, last = dense_layers(flat, widths, activation, linear)
        super().__init__(in_shape, n_classes, [*layers, *dense], last, head, normalize)


def stages(block: Callable[[int, int, int], list[Layer]], channels: int, width: int) -> list[Layer]:
    """All layers before the dense ones.

    ``block`` makes a convolution and its activation from the channels before and after it, and how
    often the map was halved.
    """

    def residual(channels: int, halvings: int) -> ConvexResidual:
        first, second = (block(channels, channels, halvings) for _ in range(2))
        return ConvexResidual(*first, *second)

    pool = ScaledAveragePool
    return [
        *block(channels, width, 0),
        *block(width, 2 * width, 0),
        pool(2),
        residual(2 * width, 1),
        *block(2 * width, 4 * width, 1),
        pool(2),
        *block(4 * width, 8 * width, 2),
        pool(2),
        residual(8 * width, 3),
        pool(2),
    ]
