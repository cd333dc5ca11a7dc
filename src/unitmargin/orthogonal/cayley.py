"""Weights by the Cayley transform: of each frequency of a convolution, or of a dense matrix."""

import math

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from unitmargin.layers.fourier import Spectrum
from unitmargin.orthogonal.layer import KernelConv2d, OrthogonalLinear, start_uniformly

INITIAL_SCALE = 0.3
"""Standard deviation of the raw kernel times sqrt(fan-in): the convolution then starts near the
identity, with rotation angles of a few tenths of a radian at every frequency."""

THREADED_ROWS = 128
"""Rows from which on systems of a stack are solved in turn. From 150 on MKL, which torch calls on
processors, factors one matrix by several threads, and does so wrongly, or never ends, where torch
has several threads factor one each (github.com/pytorch/pytorch/issues/142815)."""

Matrix = Float[Tensor, "stack rows columns"] | Complex[Tensor, "stack rows columns"]


def cayley(raw: Matrix) -> Matrix:
    r"""Cayley transform to orthonormal rows, or columns, for stacks of real or complex matrices.

    With the free matrix split as :math:`X^H = [U; V]`, U square, and
    :math:`A = U - U^H + V^H V`:

    .. math:: Q^H = [(I + A)^{-1} (I - A);\; -2 V (I + A)^{-1}].

    Shapes: any; with ``rows > columns`` the conjugate transpose is transformed, and Q has
    orthonormal columns. Real input gives real output.
    Guarantee: ``max |Q Q^H - I| <= 5e-6`` in float32, ``1e-13`` in float64, for up to 128 rows and
    a norm of X up to 8 (the error of wide matrices grows with its square); the Hermitian part of A
    is positive semidefinite, so I + A is never singular.
    Cost: one LU solve of each block.
    Source: the paper, section 4.1; Trockman, Kolter, arXiv 2104.07167.

    Example:
        >>> q = cayley(torch.randn(5, 3, 4, dtype=torch.complex64))
        >>> bool((q @ q.mH - torch.eye(3)).abs().max() < 5e-6)
        True
    """
    rows = raw.shape[-2]
    if rows > raw.shape[-1]:
        return cayley(raw.mH).mH
    upper, lower = raw.mH.split((rows, raw.shape[-1] - rows), dim=-2)
    wide = lower.shape[-2] > 0
    # Square stacks skip the empty products: each would still pass over memory.
    skew = upper - upper.mH + lower.mH @ lower if wide else upper - upper.mH
    eye = torch.eye(rows, dtype=raw.dtype, device=raw.device)
    # (I + A)^-1 (I - A) = 2 (I + A)^-1 - I: the second solve is saved.
    inverse = _solutions(eye + skew, 2.0 * eye.expand_as(skew))
    square = inverse - eye
    return (torch.cat((square, -lower @ inverse), dim=-2) if wide else square).mH


def _solutions(systems: Matrix, wanted: Matrix) -> Matrix:
    """Solutions of a stack of linear systems, in any number of threads."""
    if not systems.is_cpu or systems.shape[-1] < THREADED_ROWS or not len(systems):
        solution: Tensor = torch.linalg.solve(systems, wanted)
        return solution
    pairs = zip(systems.unbind(), wanted.unbind(), strict=True)
    return torch.stack([torch.linalg.solve(*pair) for pair in pairs])


class CayleyConv2d(KernelConv2d):
    """Circular convolution whose blocks are the Cayley transforms of a free kernel's spectrum.

    The free kernel has ``kernel_size`` taps a side and is wrapped on smaller maps; the orthogonal
    kernel has full support. See :func:`cayley`.
    """

    products = 4

    @property
    def exact_in_tf32(self) -> bool:
        """Square blocks are made by a solve alone, others by products as well."""
        return self.in_channels == self.out_channels

    def make_parameters(self) -> None:
        size = self.kernel_size
        deviation = INITIAL_SCALE / (size * self.in_channels**0.5)
        kernel = torch.randn(self.out_channels, self.in_channels, size, size)
        self.raw = nn.Parameter(kernel * deviation)

    def free_spectrum(self) -> Spectrum:
        """What is transformed, by frequency."""
        return self.kernel_transform(self.raw)

    def spectrum(self) -> Spectrum:
        return self.free_spectrum().each(cayley)


class ScaledCayleyConv2d(CayleyConv2d):
    r"""The Cayley convolution of ResNet9 and KWLarge: the free spectrum has a trained norm.

    The blocks transformed are :math:`\alpha \hat W / \|\hat W\|_F`, with one trainable number
    :math:`\alpha` that starts at :math:`\|\hat W\|_F` over the kept frequencies. Kernel and bias
    start as those of ``torch.nn.Conv2d``. Differs from the public implementation in that
    :math:`\alpha` is trained from the first step (there it is made after the optimiser), kernels
    larger than the map are wrapped instead of trimmed, and odd and non-square maps work.
    Source: Trockman, Kolter, arXiv 2104.07167.
    """

    def make_parameters(self) -> None:
        super().make_parameters()
        bound = 1.0 / math.sqrt(self.in_channels * self.kernel_size**2)
        start_uniformly(bound, self.raw, self.bias)
        with torch.no_grad():
            self.scale = nn.Parameter(frobenius(*super().free_spectrum()))

    def free_spectrum(self) -> Spectrum:
        real, pairs = super().free_spectrum()
        factor = self.scale / _divisor(real, pairs)
        return Spectrum(real * factor, pairs * factor)


class CayleyLinear(OrthogonalLinear):
    r"""Dense layer whose weight is the Cayley transform of :math:`\alpha X / \|X\|_F`.

    X and the bias start uniform on :math:`\pm 1/\sqrt{\mathrm{in}}`, the trainable number
    :math:`\alpha` at :math:`\|X\|_F`.
    Source: Trockman, Kolter, arXiv 2104.07167.
    """

    products = 2

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias)
        start_uniformly(1.0 / math.sqrt(in_features), self.raw, self.bias)
        self.scale = nn.Parameter(frobenius(self.raw.detach()))

    def weight(self) -> Float[Tensor, "out in"]:
        return cayley((self.scale / _divisor(self.raw) * self.raw)[None])[0]


def frobenius(*tensors: Tensor) -> Float[Tensor, ""]:
    """Root of the sum of all squared entries; its gradient at zero is zero."""
    norms = torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors])
    norm: Tensor = torch.linalg.vector_norm(norms)
    return norm


def _divisor(*tensors: Tensor) -> Float[Tensor, ""]:
    """Their norm, and 1 where they are zero, whose transform is the identity."""
    norm = frobenius(*tensors)
    return torch.where(norm > 0.0, norm, 1.0)
