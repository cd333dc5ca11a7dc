"""Convolutions by block convolution orthogonal parametrisation (BCOP): kernels with few taps."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.frozen.convolution import CircularConvolution
from unitmargin.layers.fourier import Spectrum
from unitmargin.orthogonal.bjorck import bjorck
from unitmargin.orthogonal.layer import KernelConv2d, start_uniformly
from unitmargin.orthogonal.polar import polish, polish_either_way

BCOP_STEPS = 20
"""Björck steps of the original, in training and evaluation."""


def projectors(matrices: Float[Tensor, "count q q"]) -> Float[Tensor, "count q q"]:
    """Orthogonal projectors on the first q // 2 columns of each orthogonal matrix."""
    frame = matrices[..., : matrices.shape[-1] // 2]
    return frame @ frame.mT


def block_convolve(
    kernel: Float[Tensor, "q h w r"], block: Float[Tensor, "2 2 r r"]
) -> Float[Tensor, "q hh ww r"]:
    """Matrix-valued convolution with a 2 x 2 kernel: products of taps, kernel on the left."""
    rows, height, width, inner = kernel.shape
    # One product for all sixteen pairs: taps of the kernel below each other, of the block beside.
    beside = block.permute(2, 0, 1, 3).reshape(inner, -1)
    product = (kernel.reshape(-1, inner) @ beside).view(rows, height, width, 2, 2, inner)
    pad = nn.functional.pad
    parts = [
        pad(product[:, :, :, i, j], (0, 0, j, 1 - j, i, 1 - i)) for i in (0, 1) for j in (0, 1)
    ]
    return torch.stack(parts).sum(0)


def bcop_kernel(
    matrices: Float[Tensor, "count q q"], in_channels: int, out_channels: int
) -> Float[Tensor, "out in k k"]:
    r"""Semi-orthogonal kernel of side k from 2k - 1 orthogonal matrices.

    With projectors P, Q of consecutive matrices, each 2 x 2 block is
    :math:`[[P Q, P (I - Q)], [(I - P) Q, (I - P)(I - Q)]]`; the kernel is their matrix-valued
    convolution behind a slice of the first matrix. Projectors have rank q // 2, fixed.
    Guarantee: singular values 1 on every torus, up to the deviation of the matrices from
    orthogonal ones.
    Cost: 2/3 min(in, out) q^2 k (k - 1) (2 k - 1) multiplications.
    Source: Li, Haque, Anil, Lucas, Grosse, Jacobsen, arXiv 1911.00937, section 4.
    """
    grows = in_channels <= out_channels
    first = matrices[0, :in_channels, :out_channels]
    first = first if grows else first.mT
    pairs = projectors(matrices[1:])
    eye = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    sides = torch.stack((pairs, eye - pairs), dim=1)
    kernel = first[:, None, None, :]
    for left, right in zip(sides[0::2], sides[1::2], strict=True):
        kernel = block_convolve(kernel, left[:, None] @ right[None, :])
    return kernel.permute(3, 0, 1, 2) if grows else kernel.permute(0, 3, 1, 2)


class BCOPConv2d(KernelConv2d):
    r"""Circular convolution with a semi-orthogonal kernel of exactly ``kernel_size`` taps a side.

    One parameter of 2k - 1 square matrices of side q = max(in, out), orthonormalised by
    ``BCOP_STEPS`` Björck steps at every call and composed by :func:`bcop_kernel`. Matrices start
    orthogonal with gain :math:`1/\sqrt q`, the bias uniform on :math:`\pm 1/\sqrt{\mathrm{out}}`.
    Padding is circular: k // 2 above and left; below and right as much for odd k, one less for
    even k.
    Guarantee: singular values of 1 within 1e-5 in float32 as long as 20 steps suffice, which they
    do up to a condition number of a few hundred; beyond, the layer contracts and stays
    1-Lipschitz. ``freeze()`` iterates until it is exact.
    Cost: 40 (2k - 1) q^3 for the matrices, then a plain convolution.
    Source: Li et al., arXiv 1911.00937, section 4; rank and initialisation as its public code.
    """

    exact_in_tf32 = False

    def make_parameters(self) -> None:
        side, count = max(self.in_channels, self.out_channels), 2 * self.kernel_size - 1
        matrices = [torch.empty(side, side) for _ in range(count)]
        start = [nn.init.orthogonal_(matrix, gain=side**-0.5) for matrix in matrices]
        self.raw = nn.Parameter(torch.stack(start))
        start_uniformly(self.out_channels**-0.5, self.bias)

    def making_cost(self) -> float:
        count, side, _ = self.raw.shape
        return float(2 * BCOP_STEPS * count * side**3)

    def kernel(self) -> Float[Tensor, "out in k k"]:
        """The spatial kernel, differentiable in the matrices."""
        return bcop_kernel(bjorck(self.raw, BCOP_STEPS), self.in_channels, self.out_channels)

    def spectrum(self) -> Spectrum:
        return self.kernel_transform(self.kernel())

    def forward(self, x: Float[Tensor, "batch in h w"]) -> Float[Tensor, "batch out h w"]:
        self.transform.require_map(x)
        with torch.autocast(x.device.type, enabled=False):
            kernel = self.kernel()
        return nn.functional.conv2d(wrap(x, self.kernel_size), kernel, self.bias)

    def freeze(self) -> CircularConvolution:
        """The deployed layer: matrices iterated in float64 until orthogonal, blocks polished."""
        matrices = polish(bjorck(self.raw.detach(), BCOP_STEPS).double())
        kernel = bcop_kernel(matrices, self.in_channels, self.out_channels)
        return self.stored(self.exact_spectrum(kernel).each(polish_either_way))


def wrap(x: Float[Tensor, "batch c h w"], kernel_size: int) -> Float[Tensor, "batch c hh ww"]:
    """Circular padding that keeps the map size: kernel_size // 2 in front, the rest behind."""
    for axis in (2, 3):
        size = x.shape[axis]
        before, after = kernel_size // 2, (kernel_size - 1) // 2
        if max(before, after) <= size:
            head, tail = x.narrow(axis, size - before, before), x.narrow(axis, 0, after)
            x = torch.cat((head, x, tail), dim=axis)
        else:
            index = torch.arange(-before, size + after, device=x.device) % size
            x = x.index_select(axis, index)
    return x
