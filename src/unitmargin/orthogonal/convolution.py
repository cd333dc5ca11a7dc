"""What all orthogonal circular convolutions share."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.fourier import CircularTransform, Spectrum, convolve, from_complex
from unitmargin.frozen.layers import CircularConvolution
from unitmargin.orthogonal.linear import refuse_growth
from unitmargin.orthogonal.polar import polish


class OrthogonalConv2d(nn.Module, ABC):
    r"""Circular convolution with :math:`J J^T = I` (GNP), evaluated by frequency.

    A subclass says how ``spectrum()`` comes from its parameters: one matrix with orthonormal rows
    for each frequency of the map.
    Shapes: ``(batch, in_channels, h, w)`` to ``(batch, out_channels, h, w)`` with
    ``(h, w) == map_size`` and ``out_channels <= in_channels``; stride 1.
    Source: the paper, section 4.1 (convolutional layers).

    Raises:
        ValueError: more output than input channels; at run time, a map of another size.
    """

    def __init__(
        self, in_channels: int, out_channels: int, map_size: tuple[int, int], bias: bool = True
    ) -> None:
        super().__init__()
        refuse_growth("channels", in_channels, out_channels)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.transform = CircularTransform(map_size)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    @abstractmethod
    def spectrum(self) -> Spectrum:
        """The blocks of all kept frequencies, differentiable in the layer's parameters."""

    def forward(self, x: Float[Tensor, "batch in h w"]) -> Float[Tensor, "batch out h w"]:
        with torch.autocast(x.device.type, enabled=False):
            spectrum = self.spectrum()
        return convolve(x, spectrum, self.bias, self.transform)

    def freeze(self) -> CircularConvolution:
        """The deployed layer: plain blocks, each polished in float64."""
        spectrum = self.spectrum()
        real = polish(spectrum.real.detach())
        pairs = polish(spectrum.complex_pairs().detach())
        bias = torch.zeros(self.out_channels) if self.bias is None else self.bias.detach()
        return CircularConvolution(
            *from_complex(real, pairs),
            bias.to(real.device, torch.float64),
            map_size=self.transform.map_size,
        )

    def extra_repr(self) -> str:
        height, width = self.transform.map_size
        return f"{self.in_channels}, {self.out_channels}, map={height}x{width}"
