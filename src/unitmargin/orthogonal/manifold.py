"""Weights that are parameters on the orthogonal manifold: nothing is computed from them.

They stay orthogonal because :class:`unitmargin.training.manifold_descent.ManifoldDescent`
moves them on the manifold.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.foundation.numbers import require_whole
from unitmargin.layers.contract import ManifoldParameters
from unitmargin.layers.fourier import Spectrum, from_complex
from unitmargin.layers.half_plane import Size, require_size
from unitmargin.orthogonal.cayley import INITIAL_SCALE, CayleyConv2d, cayley
from unitmargin.orthogonal.layer import OrthogonalConv2d, OrthogonalLinear, require_no_growth


class ManifoldLinear(OrthogonalLinear):
    """Dense layer whose parameter is its orthogonal weight; train it with ``build_optimizers``."""

    exact_in_tf32 = True

    def weight(self) -> Float[Tensor, "out in"]:
        return self.raw

    def manifold_parameters(self) -> ManifoldParameters:
        return ManifoldParameters(real=[self.raw])


class ManifoldConv2d(OrthogonalConv2d):
    """Circular convolution whose parameters are its orthogonal blocks, one a frequency.

    The kernel has full support on the map. Starts near the identity.
    """

    def __init__(
        self, in_channels: int, out_channels: int, map_size: Size, bias: bool = True
    ) -> None:
        require_no_growth("channels", in_channels, out_channels)
        super().__init__(in_channels, out_channels, map_size, bias)
        deviation = INITIAL_SCALE / in_channels**0.5
        shape = (out_channels, in_channels)
        real = torch.randn(self.transform.n_real, *shape) * deviation
        complex_type = torch.promote_types(real.dtype, torch.complex64)
        pairs = torch.randn(self.transform.n_pairs, *shape, dtype=complex_type) * deviation
        start = from_complex(cayley(real), cayley(pairs))
        self.real = nn.Parameter(start.real.contiguous())
        self.pairs = nn.Parameter(start.pairs.contiguous(), requires_grad=bool(pairs.numel()))

    def spectrum(self) -> Spectrum:
        return Spectrum(self.real, self.pairs)

    def manifold_parameters(self) -> ManifoldParameters:
        return ManifoldParameters([self.real], [self.pairs] if self.pairs.numel() else [])


def manifold_conv(
    in_channels: int, out_channels: int, kernel_size: int, map_size: Size, bias: bool = True
) -> OrthogonalConv2d:
    """On the manifold where the kernel covers the whole map, Cayley of a local kernel elsewhere.

    On a map no larger than the kernel every frequency is free, so both describe the same
    convolutions; there the matrices are large (768 channels at 2 x 2) and the Cayley transform is
    what costs. On larger maps the local kernel is a useful prior and the transform is cheap.

    Raises:
        ValueError: more output than input channels.
    """
    require_no_growth("channels", in_channels, out_channels)
    require_whole("kernel_size", kernel_size, 1, "use 3")
    if max(require_size(map_size)) <= kernel_size:
        return ManifoldConv2d(in_channels, out_channels, map_size, bias)
    return CayleyConv2d(in_channels, out_channels, kernel_size, map_size, bias)
