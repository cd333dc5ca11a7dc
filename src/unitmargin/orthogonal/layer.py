"""What all orthogonal layers share: dense ones, and convolutions."""

import copy
from abc import abstractmethod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.foundation.numbers import require_whole
from unitmargin.frozen.convolution import CircularConvolution
from unitmargin.frozen.dense import Dense
from unitmargin.layers.contract import TrainableLayer, require_vectors
from unitmargin.layers.fourier import CircularTransform, Spectrum, convolve
from unitmargin.layers.half_plane import Size
from unitmargin.layers.kernels import KernelTransform
from unitmargin.layers.promises import GNP, ISOMETRY, Promise
from unitmargin.layers.singular_values import singular_values, spectrum_singular_values
from unitmargin.orthogonal.polar import polish, polish_either_way


class OrthogonalLinear(TrainableLayer):
    r"""Dense layer :math:`h(x) = W x + b` with :math:`W W^T = I` (GNP).

    A subclass says how ``weight()`` comes from the parameter ``raw``: a matrix of the weight's
    shape that starts orthogonal, or what the subclass puts in its place (skew and Cayley layers).
    Shapes: ``(batch, in_features)`` to ``(batch, out_features)``, ``out_features <= in_features``.
    It is made in the parameter's dtype by ``forward``, freezing and audits, whatever autocast says.
    Source: the paper, section 4.1 (fully connected layers).

    Raises:
        ValueError: more outputs than inputs.
    """

    promise = GNP
    exact_in_tf32 = False
    tf32_choice = 'linear = "manifold"'
    products = 0
    """Products of the weight with a square matrix of its rows that make it in evaluation."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        step = "give the number of entries"
        in_features = require_whole("in_features", in_features, 1, step)
        out_features = require_whole("out_features", out_features, 1, step)
        require_no_growth("features", in_features, out_features)
        self.in_features, self.out_features = in_features, out_features
        self.raw = nn.Parameter(nn.init.orthogonal_(torch.empty(out_features, in_features)))
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def singular_values(self) -> Float[Tensor, " values"]:
        return singular_values(self.weight())

    def making_cost(self) -> float:
        return float(self.products * self.out_features**2 * self.in_features)

    @abstractmethod
    def weight(self) -> Float[Tensor, "out in"]:
        """The orthogonal weight, differentiable in the layer's parameters."""

    def forward(self, x: Float[Tensor, "batch in"]) -> Float[Tensor, "batch out"]:
        require_vectors(x)
        with torch.autocast(x.device.type, enabled=False):
            weight = self.weight()
        return nn.functional.linear(x, weight, self.bias)

    def fix(self) -> Dense:
        return self.stored(self.weight())

    def freeze(self) -> Dense:
        """The deployed layer: a plain weight, polished in float64."""
        return self.stored(polish(self.weight()))

    def stored(self, weight: Float[Tensor, "out in"]) -> Dense:
        """A fixed layer of this weight and this layer's bias, in the dtype of the weight."""
        bias = torch.zeros(self.out_features) if self.bias is None else self.bias.detach()
        return Dense(weight.detach(), bias.to(weight))

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class OrthogonalConv2d(TrainableLayer):
    r"""Semi-orthogonal circular convolution, evaluated by frequency.

    A subclass says how ``spectrum()`` comes from its parameters: one semi-orthogonal matrix for
    each frequency of the map.
    Shapes: ``(batch, in_channels, h, w)`` to ``(batch, out_channels, h, w)`` with
    ``(h, w) == map_size``; stride 1 (a stride is a PixelUnshuffle in front).
    Guarantee: all singular values are 1. With ``out_channels <= in_channels`` that is
    :math:`J J^T = I` (GNP, ``gnp`` is true); a convolution that grows has :math:`J^T J = I`
    instead: an isometry, 1-Lipschitz, but gradients on their way back are projected.
    Source: the paper, section 4.1 (convolutional layers).

    Raises:
        ValueError: at run time, a map of another size.
    """

    tf32_choice = 'conv = "skew"'
    products = 0
    """Products of a frequency's block with a square matrix of its rows that make it."""

    def __init__(
        self, in_channels: int, out_channels: int, map_size: Size, bias: bool = True
    ) -> None:
        super().__init__()
        step = "leave the layer out of an empty network"
        self.in_channels = require_whole("in_channels", in_channels, 1, step)
        self.out_channels = require_whole("out_channels", out_channels, 1, step)
        self.transform = CircularTransform(map_size)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    @property
    def promise(self) -> Promise:
        return GNP if self.out_channels <= self.in_channels else ISOMETRY

    def singular_values(self) -> Float[Tensor, " values"]:
        return spectrum_singular_values(self.spectrum())

    def settings(self) -> dict[str, Any]:
        return {"channels": f"{self.in_channels} to {self.out_channels}"}

    def making_cost(self) -> float:
        wide, narrow = sorted((self.in_channels, self.out_channels), reverse=True)
        return float(self.products * self.transform.n_pixels * narrow**2 * wide)

    @abstractmethod
    def spectrum(self) -> Spectrum:
        """The blocks of all kept frequencies, differentiable in the layer's parameters."""

    def forward(self, x: Float[Tensor, "batch in h w"]) -> Float[Tensor, "batch out h w"]:
        with torch.autocast(x.device.type, enabled=False):
            spectrum = self.spectrum()
        return convolve(x, spectrum, self.bias, self.transform)

    def fix(self) -> CircularConvolution:
        return self.stored(self.spectrum())

    def freeze(self) -> CircularConvolution:
        """The deployed layer: plain blocks, each polished in float64."""
        return self.stored(self.spectrum().each(polish_either_way))

    def stored(self, spectrum: Spectrum) -> CircularConvolution:
        """A fixed layer of these blocks and this layer's bias, in the dtype of the blocks."""
        blocks = Spectrum(spectrum.real.detach(), spectrum.pairs.detach())
        bias = torch.zeros(self.out_channels) if self.bias is None else self.bias.detach()
        return CircularConvolution(*blocks, bias.to(blocks.real), map_size=self.transform.map_size)

    def extra_repr(self) -> str:
        height, width = self.transform.map_size
        return f"{self.in_channels}, {self.out_channels}, map={height}x{width}"


class KernelConv2d(OrthogonalConv2d):
    """An orthogonal convolution whose blocks come from a kernel of ``kernel_size`` taps a side."""

    raw: nn.Parameter

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        map_size: Size,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, map_size, bias)
        self.kernel_size = require_whole("kernel_size", kernel_size, 1, "use 3")
        self.kernel_transform = KernelTransform((self.kernel_size,) * 2, map_size)
        self.make_parameters()

    @abstractmethod
    def make_parameters(self) -> None:
        """Draw the free tensor ``raw``, and the bias where it does not start at zero."""

    def exact_spectrum(self, kernel: Float[Tensor, "out in k k"]) -> Spectrum:
        """Spectrum of a kernel in float64."""
        return copy.deepcopy(self.kernel_transform).double()(kernel)


def start_uniformly(bound: float, *parameters: nn.Parameter | None) -> None:
    """Draw what there is of the parameters anew, uniform on +-bound."""
    for parameter in parameters:
        if parameter is not None:
            nn.init.uniform_(parameter, -bound, bound)


GROWTH = {
    "channels": "or move pixels into channels first (PixelUnshuffle)",
    "features": "or append columns of zeros to the inputs, which change no distance",
}
"""Where room for more outputs comes from."""


def require_no_growth(what: str, inputs: int, outputs: int) -> None:
    """Raise the error that explains why a GNP layer cannot widen."""
    if outputs > inputs:
        raise ValueError(
            f"out_{what} must be at most in_{what}: a GNP layer needs J J^T = I, and a matrix "
            f"with more rows than columns cannot have orthonormal rows, got {inputs} -> {outputs}; "
            f"narrow the layer, {GROWTH[what]}"
        )
