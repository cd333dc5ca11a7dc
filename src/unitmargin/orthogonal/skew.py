r"""Skew orthogonal convolutions (SOC): the exponential of a skew-symmetric operator.

With S skew, :math:`\exp(S) = \sum_i S^i / i!` is orthogonal. The operator of a filter S with
:math:`S_{-p} = -S_p^T` is skew on every torus, so each frequency has a skew-Hermitian block.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Inexact
from torch import Tensor, nn

from unitmargin.frozen.convolution import CircularConvolution
from unitmargin.frozen.dense import Dense
from unitmargin.layers.contract import require_vectors
from unitmargin.layers.fourier import Spectrum, multiply
from unitmargin.orthogonal.layer import KernelConv2d, OrthogonalLinear, start_uniformly
from unitmargin.orthogonal.polar import polish, polish_either_way

TRAINING_DEGREE = 5
"""Degree of the truncated series in training, as in the public code."""

CORRECTION = 0.7
"""The paper's factor on filters larger than 1 x 1: with exact norms the operator norm is then at
most 0.7 * 3 = 2.1 for a 3 x 3 filter, and about 1.25 for a random one."""

POWER_STEPS = 10
"""Power steps from a fixed start. They miss a few per cent of the norm of a random matrix, which
changes the scale of S alone: exp(S) is orthogonal at every scale."""

EXPONENTIAL_PRODUCTS = 7
"""Products of an exponential: five, and one or two halvings."""

LARGEST_ARGUMENT = {torch.float32: 1.5, torch.float64: 0.3}
"""Norms up to which the series of degree 12 is exact to rounding: x^13 / 13! is 3e-8 and 3e-17."""


def skew_filter(raw: Float[Tensor, "q q k k"]) -> Float[Tensor, "q q k k"]:
    """``(M - M') / 2``, where M' swaps the channels and flips both axes: a skew operator."""
    return 0.5 * (raw - raw.transpose(0, 1).flip(2, 3))


def unrolled_norm(
    skew: Float[Tensor, "q q k k"],
    steps: int = POWER_STEPS,
    starts: Sequence[Tensor] = (),
) -> Float[Tensor, ""]:
    r"""Smallest spectral norm of the unrollings of a skew filter, estimated by power steps.

    :math:`\sqrt{hw}` times the smallest norm of the four unrollings bounds the operator norm. For a
    skew filter they are two by two the same up to sign and order of rows, so two are left:
    :math:`\mathrm{out} \times (\mathrm{in}\, h w)` and
    :math:`(\mathrm{out}\, h) \times (\mathrm{in}\, w)`; for 1 x 1 filters one.
    Stateless: the ``starts`` are fixed (:func:`start_vectors`, drawn where none are given), and the
    gradient flows through the norm with the singular vectors constant, which is exact where they
    have converged.
    Cost: ``2 steps`` products of a matrix and a vector.
    Source: Singla, Feizi, "Fantastic Four" (arXiv 1911.10258) and arXiv 2105.11417.
    """
    unrolled = [skew.flatten(1)]
    if skew.shape[-1] > 1:
        unrolled.append(skew.permute(0, 2, 1, 3).flatten(2).flatten(0, 1))
    norms = []
    for matrix, start in zip(unrolled, starts or start_vectors(skew.shape), strict=True):
        fixed = matrix.detach()
        vector = start.to(fixed)
        for _ in range(steps):
            vector = nn.functional.normalize(fixed.mT @ (fixed @ vector), dim=0)
        norms.append(torch.linalg.vector_norm(matrix @ vector))
    return torch.stack(norms).min()


def start_vectors(shape: Sequence[int]) -> list[Float[Tensor, " size"]]:
    """Fixed unit vectors without structure, one for each unrolling of a filter: Gaussian numbers of
    a generator of their own.

    Drawn when a layer is made: neither ``torch.func.vmap`` nor ``torch.compile`` takes a draw in
    the forward pass.
    """
    sizes = [shape[1] * shape[2] * shape[3], shape[1] * shape[3]][: 2 if shape[-1] > 1 else 1]
    return [_start_vector(size) for size in sizes]


def _start_vector(size: int) -> Float[Tensor, " size"]:
    generator = torch.Generator().manual_seed(0)
    vector: Tensor = torch.randn(size, generator=generator, device="cpu", dtype=torch.float32)
    return vector / vector.square().sum().sqrt()


def scaled_skew_filter(
    raw: Float[Tensor, "q q k k"],
    steps: int = POWER_STEPS,
    starts: Sequence[Tensor] = (),
) -> Float[Tensor, "q q k k"]:
    """The filter of S: skew part over its unrolled norm, times ``CORRECTION`` beyond 1 x 1.

    It is that of every positive multiple of ``raw``; entries are divided by the largest one first,
    so that squares neither over- nor underflow.
    """
    skew = skew_filter(raw)
    largest = skew.detach().abs().amax()
    skew = skew / torch.where(largest > 0.0, largest, 1.0)
    correction = CORRECTION if raw.shape[-1] > 1 else 1.0
    # A filter of zeros stays one: its exponential is the identity.
    norm = unrolled_norm(skew, steps, starts)
    return skew * (correction / torch.where(norm > 0.0, norm, 1.0))


class SkewConv2d(KernelConv2d):
    r"""Skew orthogonal convolution: ``exp(S)`` on q = max(in, out) channels.

    Missing input channels are zeros, surplus output channels are dropped.

    - In training the series stops at ``TRAINING_DEGREE`` 5, applied to the activations by
      frequency: its gain lies within 5e-3 of 1 up to an operator norm of 1.86 and may exceed 1. The
      norm is at most 0.7 times the kernel's side: 2.1 for 3 x 3, where the gain is 0.98,
      but 4.9 for 7 x 7, where filters of equal taps were measured to amplify 16 times.
    - In evaluation, in ``freeze()`` and in every measurement the blocks are full exponentials,
      which are orthogonal for *every* skew S: nothing rests on a truncation or on a bound of its
      norm, and there is no state to refresh. The original stops at degree 12 there, which differs
      by less than 3e-6 up to its norm bound of 2.1.

    Padding is circular as in all convolutions here; the original pads with zeros.
    Guarantee: in evaluation, singular values of 1 within 1e-5 in float32.
    Filters start Gaussian with variance 1/q, the bias uniform on
    :math:`\pm 1/\sqrt{\mathrm{out}}`.

    Raises:
        ValueError: an even kernel, which has no centre to be skew about.

    Cost: in training ``TRAINING_DEGREE`` products of q x q by frequency a sample; in evaluation
    about 7 products of q^3 a frequency, once a call.
    Source: Singla, Feizi, arXiv 2105.11417.
    """

    power_steps = POWER_STEPS

    def make_parameters(self) -> None:
        side, size = max(self.in_channels, self.out_channels), self.kernel_size
        if size % 2 == 0:
            raise ValueError(
                f"kernel_size of a skew convolution must be odd, got {size}; use {size + 1}, or "
                "BCOP for even kernels"
            )
        self.raw = nn.Parameter(torch.randn(side, side, size, size) / side**0.5)
        start_uniformly(self.out_channels**-0.5, self.bias)
        self.starts = start_vectors(self.raw.shape)

    def making_cost(self) -> float:
        return float(EXPONENTIAL_PRODUCTS * self.transform.n_pixels * self.raw.shape[0] ** 3)

    def skew_filter(self) -> Float[Tensor, "q q k k"]:
        """The filter of S."""
        return scaled_skew_filter(self.raw, self.power_steps, self.starts)

    def skew_spectrum(self) -> Spectrum:
        """The skew-Hermitian blocks of S, q x q."""
        return self.kernel_transform(self.skew_filter())

    def spectrum(self) -> Spectrum:
        return self._slice(self.skew_spectrum().each(exponential))

    def _slice(self, blocks: Spectrum) -> Spectrum:
        rows, columns = slice(self.out_channels), slice(self.in_channels)
        return Spectrum(blocks.real[:, rows, columns], blocks.pairs[:, :, rows, columns])

    def forward(self, x: Float[Tensor, "batch in h w"]) -> Float[Tensor, "batch out h w"]:
        if not self.training:
            return super().forward(x)
        self.transform.require_map(x)
        with torch.autocast(x.device.type, enabled=False):
            blocks = self.skew_spectrum()
        output = self.transform.synthesise(*self._series(blocks, *self.transform.analyse(x)))
        return output if self.bias is None else output + self.bias[:, None, None]

    def _series(self, blocks: Spectrum, *start: Tensor) -> tuple[Tensor, Tensor]:
        """The truncated series by Horner's rule; the last product makes the kept channels alone."""
        missing, kept = blocks.real.shape[-1] - self.in_channels, slice(self.out_channels)
        real, pairs = (nn.functional.pad(part, (0, missing)) for part in start)
        term = (real, pairs)
        for degree in range(TRAINING_DEGREE, 1, -1):
            image = multiply(blocks, *term)
            term = (real + image[0] / degree, pairs + image[1] / degree)
        last = Spectrum(blocks.real[:, kept], blocks.pairs[:, :, kept])
        image = multiply(last, *term)
        return real[..., kept] + image[0], pairs[..., kept] + image[1]

    def freeze(self) -> CircularConvolution:
        """The deployed layer: exponentials in float64."""
        skew = self.skew_filter().detach().double()
        blocks = self._slice(self.exact_spectrum(skew).each(exponential))
        return self.stored(blocks.each(polish_either_way))


def exponential(matrices: Inexact[Tensor, "*stack q q"]) -> Inexact[Tensor, "*stack q q"]:
    r"""Matrix exponential by its series of degree 12 and repeated squaring.

    The norm that decides on the halvings is bounded by :math:`\|S^4\|_1^{1/4}`, so the truncation
    stays below rounding for every argument.
    Guarantee: ``max |Q Q^H - I| <= 5e-6`` in float32 and 1e-13 in float64 for skew-Hermitian
    arguments of norm up to 10. (``torch.linalg.matrix_exp`` misses by 3e-5 in float32 at some.)
    Cost: 5 products and one a halving.
    Source: Paterson, Stockmeyer 1973; Higham, Functions of Matrices, chapter 10.
    """
    if torch.compiler.is_exporting():
        raise ValueError(
            "a skew layer must be exported in training mode or frozen, got one in evaluation, "
            "whose exponential takes as many steps as its weight needs; export "
            "unitmargin.freeze(model), or model.train()"
        )
    second = matrices @ matrices
    third, fourth = second @ matrices, second @ second
    norm = float(fourth.detach().abs().sum(-2).max()) ** 0.25 if fourth.numel() else 0.0
    # A norm that is not finite has no scale: the result is not finite either.
    largest = LARGEST_ARGUMENT[matrices.real.dtype]
    halvings = max(0, math.ceil(math.log2(norm / largest))) if 0.0 < norm < math.inf else 0
    eye = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    scale = 0.5**halvings
    powers = [eye, matrices * scale, second * scale**2, third * scale**3]
    fourth = fourth * scale**4
    result = fourth / math.factorial(12)
    for start in (8, 4, 0):
        terms = [power / math.factorial(start + i) for i, power in enumerate(powers)]
        result = terms[0] + terms[1] + terms[2] + terms[3] + result
        result = fourth @ result if start else result
    for _ in range(halvings):
        result = result @ result
    return result


class SkewLinear(OrthogonalLinear):
    """Dense layer whose weight is the first rows of ``exp(S)``, S skew: a 1 x 1 convolution.

    As in :class:`SkewConv2d` the series is truncated in training alone.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias)
        self.raw = nn.Parameter(torch.randn(in_features, in_features) / math.sqrt(in_features))
        start_uniformly(out_features**-0.5, self.bias)
        self.starts = start_vectors((in_features, in_features, 1, 1))

    def making_cost(self) -> float:
        return float(EXPONENTIAL_PRODUCTS * self.in_features**3)

    def skew(self) -> Float[Tensor, "in in"]:
        """The matrix S, of norm about 1."""
        return scaled_skew_filter(self.raw[:, :, None, None], starts=self.starts)[:, :, 0, 0]

    def weight(self) -> Float[Tensor, "out in"]:
        return exponential(self.skew())[: self.out_features]

    def settings(self) -> dict[str, Any]:
        return {"outputs": self.out_features}

    def forward(self, x: Float[Tensor, "batch in"]) -> Float[Tensor, "batch out"]:
        if not self.training:
            return super().forward(x)
        require_vectors(x)
        with torch.autocast(x.device.type, enabled=False):
            skew = self.skew()
        term = x
        for degree in range(TRAINING_DEGREE, 1, -1):
            term = x + nn.functional.linear(term, skew) / degree
        last = nn.functional.linear(term, skew[: self.out_features], self.bias)
        return x[:, : self.out_features] + last

    def freeze(self) -> Dense:
        """The deployed layer: the exponential in float64."""
        exact = exponential(self.skew().detach().double())[: self.out_features]
        return self.stored(polish(exact))
