r"""Circular convolutions in the real Fourier basis.

On an H x W torus a convolution acts on each frequency alone. Of the N = H W frequencies, S are
self-conjugate (their coefficients are real) and the others form P conjugate pairs, one of which
is kept: N = S + 2 P. So a convolution is S real matrices and P complex ones, with no redundancy:

.. math:: \hat y(\omega) = \hat W(\omega)\, \hat x(\omega), \qquad
          \hat W(\omega) = \sum_p K_p\, e^{i \omega \cdot (p - c)},

with K_p the channel matrix of tap p and c the centre of the kernel. The sum over taps wraps a
kernel that is larger than the map; nothing is trimmed.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from unitmargin.foundation.tensors import makes_numbers
from unitmargin.layers import half_plane
from unitmargin.layers.contract import require_maps
from unitmargin.layers.half_plane import Maps, Pairs, Real, Size, require_size

MATRIX_LIMIT = 64
"""Maps up to this many pixels are transformed by one matrix product, larger ones by FFT: measured
on two CPU cores, the product wins up to 8 x 8."""

NARROW = 8
"""Products with fewer channels run with the batch as columns: eight times faster at 3 channels,
equal at 12 (measured on two CPU cores)."""


Points = list[tuple[int, int]]


class Frequencies(NamedTuple):
    """The frequencies of a map that determine all others, as (row, column) pairs."""

    real: Points
    pairs: Points


@lru_cache
def frequencies(height: int, width: int) -> Frequencies:
    """Self-conjugate frequencies (zero first), and one representative of each conjugate pair.

    Example:
        >>> frequencies(2, 2).real, frequencies(3, 1).pairs
        ([(0, 0), (0, 1), (1, 0), (1, 1)], [(1, 0)])
    """
    real, pairs = [], []
    for row in range(height):
        for column in range(width // 2 + 1):
            mirror = (-row % height, -column % width)
            if mirror == (row, column):
                real.append((row, column))
            elif mirror[1] != column or mirror[0] > row:
                pairs.append((row, column))
    return Frequencies(real, pairs)


def count_frequencies(map_size: Size) -> tuple[int, int]:
    """How many self-conjugate frequencies and pairs a map has, without making them.

    Example:
        >>> count_frequencies((2, 3)), count_frequencies((100_000, 100_000))
        ((2, 2), (4, 4999999998))
    """
    real = math.prod(1 if side % 2 else 2 for side in map_size)
    return real, (math.prod(map_size) - real) // 2


def angles(chosen: Points, points: Points, map_size: Size) -> Float[Tensor, "chosen points"]:
    """omega . p for each frequency and point, in float64, reduced exactly modulo one turn."""
    height, width = map_size
    rows = [
        [((f * p) % height) / height + ((g * q) % width) / width for p, q in points]
        for f, g in chosen
    ]
    turns = torch.tensor(rows, dtype=torch.float64).reshape(len(chosen), len(points))
    return 2.0 * math.pi * turns


def circular_matrix(map_size: Size) -> Float[Tensor, "n n"]:
    """The transform of a small map, on the CPU whatever the default device: self-conjugate waves,
    then cosines and negative sines of each pair. A copy."""
    return _kept_matrix(map_size).clone() if makes_numbers() else _matrix(map_size)


def _matrix(map_size: Size) -> Float[Tensor, "n n"]:
    height, width = map_size
    points = [(row, column) for row in range(height) for column in range(width)]
    chosen = frequencies(height, width)
    with torch.device("cpu"):
        real = angles(chosen.real, points, map_size).cos() / math.sqrt(len(points))
        turned = angles(chosen.pairs, points, map_size)
        pairs = torch.stack((turned.cos(), -turned.sin()), dim=1).flatten(0, 1)
        return torch.cat((real, pairs * math.sqrt(2.0 / len(points))))


_kept_matrix = lru_cache(_matrix)
"""Made once: thousands of layers may need it."""


class CircularTransform(nn.Module):
    """Orthonormal real Fourier transform of an H x W map: an isometry, exact inverse included.

    ``analyse`` maps ``(batch, c, h, w)`` to the real coefficients ``(S, batch, c)`` and the paired
    ones ``(P, 2, batch, c)`` (real and imaginary part, times sqrt 2); ``synthesise`` is its inverse
    and its transpose. Its only tables depend on the map size alone and are rebuilt in float64
    whenever the module moves to another dtype, so they cannot go stale.

    Cost: N^2 multiplications a channel up to ``MATRIX_LIMIT`` pixels, N log N above.

    Example:
        >>> transform = CircularTransform((3, 4)).double()
        >>> x = torch.randn(2, 5, 3, 4, dtype=torch.float64)
        >>> bool((transform.synthesise(*transform.analyse(x)) - x).abs().max() < 1e-14)
        True
    """

    basis: Tensor
    gather: Tensor
    mirrored: Tensor
    source: Tensor

    def __init__(self, map_size: Size) -> None:
        super().__init__()
        self.map_size = require_size(map_size)
        self.n_pixels = math.prod(self.map_size)
        chosen = frequencies(*self.map_size)
        self.n_real, self.n_pairs = len(chosen.real), len(chosen.pairs)
        self.by_matrix = self.n_pixels <= MATRIX_LIMIT
        if self.by_matrix:
            basis = self.matrix().to(torch.get_default_dtype())
            self.register_buffer("basis", basis, persistent=False)
        else:
            self._register_gathers(chosen)

    def matrix(self) -> Float[Tensor, "n n"]:
        """The transform as a matrix, in float64, on the default device: self-conjugate waves, then
        cosines and sines of each pair next to each other."""
        return circular_matrix(self.map_size).to(torch.get_default_device())

    def _register_gathers(self, chosen: Frequencies) -> None:
        """Index tables between the half plane of ``rfft2`` and the kept frequencies."""
        height, width = self.map_size
        half = width // 2 + 1
        kept = [*chosen.real, *chosen.pairs]
        position = {frequency: index for index, frequency in enumerate(kept)}
        mirrored: list[int] = []
        source = []
        for row in range(height):
            for column in range(half):
                if (row, column) in position:
                    source.append(position[row, column])
                else:
                    source.append(len(kept) + len(mirrored))
                    mirrored.append(position[-row % height, -column % width] - self.n_real)
        gather = [row * half + column for row, column in kept]
        self.register_buffer("gather", torch.tensor(gather), persistent=False)
        self.register_buffer("mirrored", torch.tensor(mirrored).long(), persistent=False)
        self.register_buffer("source", torch.tensor(source), persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        lost = not self.by_matrix and self.gather.is_meta
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self.by_matrix:
            self.basis = circular_matrix(self.map_size).to(self.basis)
        elif lost and not self.gather.is_meta:
            device = self.gather.device
            self._register_gathers(frequencies(*self.map_size))
            super()._apply(lambda table: table.to(device))  # type: ignore[no-untyped-call]
        return self

    def require_map(self, x: Maps) -> None:
        """Raise unless ``x`` has the map size of this transform."""
        require_maps(x)
        if tuple(x.shape[-2:]) != self.map_size:
            raise ValueError(
                f"x must have the map size {self.map_size[0]} x {self.map_size[1]} this "
                f"convolution was built for, got {x.shape[-2]} x {x.shape[-1]}; build the network "
                "with the in_shape of your inputs"
            )

    def analyse(self, x: Maps) -> tuple[Real, Pairs]:
        batch, channels = x.shape[:2]
        if self.by_matrix:
            flat = self.basis.to(x.dtype) @ x.reshape(batch * channels, self.n_pixels).mT
            waves = flat.view(self.n_pixels, batch, channels)
            if self.n_pairs == 0:
                # Splitting and joining empty parts would copy the whole map in every pass.
                return waves, waves.new_empty(0, 2, batch, channels)
            real, pairs = waves.split((self.n_real, 2 * self.n_pairs))
            return real, pairs.view(self.n_pairs, 2, batch, channels)
        return half_plane.analyse(x, self._tables())

    def synthesise(self, real: Real, pairs: Pairs) -> Maps:
        if self.by_matrix:
            waves = torch.cat((real, pairs.flatten(0, 1))) if self.n_pairs else real
            flat = waves.reshape(self.n_pixels, -1).mT @ self.basis.to(real.dtype)
            return flat.view(*real.shape[1:], *self.map_size)
        return half_plane.synthesise(real, pairs, self._tables(), self.map_size)

    def _tables(self) -> half_plane.Tables:
        return half_plane.Tables(self.gather, self.mirrored, self.source)


class Spectrum(NamedTuple):
    """A circular convolution by frequency: S real blocks and P complex ones (real, imaginary)."""

    real: Float[Tensor, "s out in"]
    pairs: Float[Tensor, "p 2 out in"]

    def complex_pairs(self) -> Complex[Tensor, "p out in"]:
        return torch.complex(self.pairs[:, 0], self.pairs[:, 1])

    def each(self, function: Callable[[Tensor], Tensor]) -> "Spectrum":
        """The function, one of stacks of real or complex matrices, of every block."""
        real = function(self.real)
        if self.pairs.numel() == 0:
            return Spectrum(real, self.pairs.to(real))
        return from_complex(real, function(self.complex_pairs()))


def from_complex(real: Float[Tensor, "s out in"], pairs: Complex[Tensor, "p out in"]) -> Spectrum:
    """Spectrum of real blocks and complex blocks."""
    # Not by pairs.real and pairs.imag, which torch.func.vmap does not take of a conjugate.
    return Spectrum(real, torch.view_as_real(pairs.resolve_conj()).movedim(-1, 1))


def _join_products(four: Float[Tensor, "p batches outs"]) -> Float[Tensor, "p 2 batch out"]:
    """Complex products from the real ones of all parts: ``Re Re - Im Im`` and ``Re Im + Im Re``.

    ``four`` has the real parts of the inputs before the imaginary ones (rows), and those of the
    blocks alike (columns).
    """
    batch, outputs = four.shape[1] // 2, four.shape[2] // 2
    of_real, of_imaginary = four.view(len(four), 2, batch, 2, outputs).unbind(1)
    (aa, ab), (ba, bb) = of_real.unbind(2), of_imaginary.unbind(2)
    return torch.stack((aa - bb, ab + ba), dim=1)


def multiply(
    spectrum: Spectrum, real: Real, pairs: Pairs, bias: Float[Tensor, "s 1 out"] | None = None
) -> tuple[Float[Tensor, "s batch out"], Float[Tensor, "p 2 batch out"]]:
    """Apply each frequency's block; complex products run as one real batched product.

    ``bias`` is added to the self-conjugate frequencies, inside their product.

    Cost: N in out multiplications a sample (2 more on the pairs, for the four real products).
    """
    blocks = spectrum.real.mT
    product = real @ blocks if bias is None else torch.baddbmm(bias, real, blocks)
    factors, columns = spectrum.pairs.flatten(1, 2), pairs.flatten(1, 2)
    narrow = columns.shape[-1] < NARROW
    four = (factors @ columns.mT).mT if narrow else columns @ factors.mT
    return product, _join_products(four)


def convolve(
    x: Float[Tensor, "batch in h w"],
    spectrum: Spectrum,
    bias: Float[Tensor, " out"] | None,
    transform: CircularTransform,
) -> Float[Tensor, "batch out h w"]:
    """Circular convolution by its spectrum; the bias enters at frequency zero alone.

    Under autocast the products run in its dtype; the FFT of large maps and its inverse never do.

    Raises:
        ValueError: the map of ``x`` is not the transform's.
    """
    transform.require_map(x)
    offset = None
    if bias is not None:
        zero = (bias * math.sqrt(transform.n_pixels)).view(1, 1, -1)
        offset = nn.functional.pad(zero, (0, 0, 0, 0, 0, transform.n_real - 1))
    real, pairs = multiply(spectrum, *transform.analyse(x), offset)
    return transform.synthesise(real, pairs)
