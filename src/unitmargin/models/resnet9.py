"""ResNet9: eight Cayley convolutions, two convex residuals."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.foundation.numbers import require_whole
from unitmargin.frozen.combination import ConvexCombination, combined_gains
from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.contract import Gains, Layer, TrainableLayer, inner_gains, walk
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.promises import LIPSCHITZ
from unitmargin.models.classifier import Classifier, conv_layers, dense_layers, image_shape

INITIAL_GATE = 0.5
"""Start of the gate in the public code of ResNet9: the input's share is then 0.622."""


class ConvexResidual(TrainableLayer):
    r"""``t x + (1 - t) B(x)`` with :math:`t = \mathrm{sigmoid}(a)` and a trainable number a.

    1-Lipschitz if B is; not GNP. See :class:`unitmargin.frozen.ConvexCombination`.

    Raises:
        ValueError: in ``forward``, a branch that changes the shape of its input.
    """

    promise = LIPSCHITZ

    def __init__(self, *branch: Layer) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.tensor(INITIAL_GATE))
        self.branch = nn.Sequential(*branch)

    @property
    def share(self) -> Float[Tensor, ""]:
        """The input's share t."""
        return self.gate.sigmoid()

    def forward(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        share = self.share
        output: Tensor = self.branch(x)
        if output.shape != x.shape:  # a sum that broadcasts would not be a convex combination
            raise ValueError(
                f"the branch must keep the shape {tuple(x.shape[1:])} of its input, got "
                f"{tuple(output.shape[1:])}; move what changes it out of the branch"
            )
        return share * x + (1.0 - share) * output

    def sublayers(self) -> list[Layer]:
        return [layer for _, layer in walk("branch", self.branch)]

    def singular_values(self) -> None:
        return None

    def gains(self, inner: Sequence[float] | None = None) -> Gains:
        return combined_gains(float(self.share.detach()), inner_gains(self, inner))

    def fix(self) -> ConvexCombination:
        return ConvexCombination(self.share.detach(), [layer.fix() for layer in self.sublayers()])

    def freeze(self) -> ConvexCombination:
        """The deployed layer; the share is computed in float64."""
        share = self.gate.detach().double().sigmoid()
        return ConvexCombination(share, [layer.freeze() for layer in self.sublayers()])


class ResNet9(Classifier):
    r"""The 1-Lipschitz residual network of the Cayley paper: 7.62 M parameters on 3 x 32 x 32.

    3 x 3 convolutions c -> w, w -> 2w, pool, a residual of two 2w -> 2w, 2w -> 4w, pool,
    4w -> 8w, pool, a residual of two 8w -> 8w, pool, with w = 64; a dense layer to 512 and the
    orthonormal head. The activation, MaxMin in the original, follows every layer but the head;
    pools are :class:`unitmargin.layers.average_pool.ScaledAveragePool`, residuals convex
    combinations.

    Args (the others: :class:`Classifier`):
        width: w.
        normalize: the original subtracts the mean.

    Guarantee: 1-Lipschitz. Not GNP, because channels grow and convex residuals shrink gradients:
    certificates are lower bounds and the network is no signed distance classifier.

    Raises:
        ValueError: a side not divisible by 16, or a width below 1.

    Source: Trockman, Kolter, arXiv 2104.07167, and its public code.

    Example:
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
        channels, height, columns = image_shape(in_shape, 16)
        width = require_whole("width", width, 1, "use 64")

        def block(inputs: int, outputs: int, halvings: int) -> list[Layer]:
            size = (height >> halvings, columns >> halvings)
            return conv_layers(conv, inputs, outputs, 3, size, activation)

        def residual(width: int, halvings: int) -> ConvexResidual:
            return ConvexResidual(*block(width, width, halvings), *block(width, width, halvings))

        layers = [
            *block(channels, width, 0),
            *block(width, 2 * width, 0),
            ScaledAveragePool(2),
            residual(2 * width, 1),
            *block(2 * width, 4 * width, 1),
            ScaledAveragePool(2),
            *block(4 * width, 8 * width, 2),
            ScaledAveragePool(2),
            residual(8 * width, 3),
            ScaledAveragePool(2),
        ]
        flat = 8 * width * (height // 16) * (columns // 16)
        dense, last = dense_layers(flat, hidden, (512,), activation, linear)
        super().__init__(in_shape, n_classes, [*layers, *dense], last, head, normalize)
