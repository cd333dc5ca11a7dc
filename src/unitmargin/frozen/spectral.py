r"""Proved upper bounds of spectral norms and of the head's pair distances, in float64.

Equation numbers are those of docs/soundness.md. Nothing here is an estimate from below: no power
iteration, no eigenvalue as a solver returns it.
"""

import math
from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.layers.arithmetic import SMALLEST_NORMAL, UP, WIDE, compounded, gamma

RESIDUAL_ENOUGH = 1e-6
"""Relative excess up to which the residual bound of a large matrix is kept: a verified Cholesky
factor of 1,024 rows costs a hundred times more and moves a radius in its seventh digit."""

ALWAYS_CHOLESKY = 256
"""Matrices of up to this many rows get the tighter bound in any case: milliseconds."""

CHUNK_ENTRIES = 2**22
"""Stacks are bounded in parts of about this many numbers: several arrays of 32 MB fit anywhere, and
a matrix that is read again and again stays in the cache."""

CHOLESKY_ATTEMPTS = 12
"""Shifts that are tried, each 16 times further from the estimate: from 2^-40 to 2^4 of it."""

PERRON_STEPS = 30
"""Power steps that choose the test vector; the bound holds for any of them."""

PERRON_GAIN = 1e-4
"""Relative gain of a step below which no other is made: the bound multiplies rounding errors."""

UNDERFLOW = 2.0**-500
"""Added to squares of matrices scaled to a largest entry in [1/2, 1): products below it are lost,
whole matrices of them weigh less."""

DENORMAL = SMALLEST_NORMAL[torch.float64]
"""Added where a bound is scaled back: among denormal numbers a product may round down to less."""

LARGEST_EXPONENT = 900
"""Entries of 2^900 and more are refused: their products leave the range of float64."""


def spectral_norm_bound(blocks: Float[Tensor, "b m n"], embedded: bool = False) -> float:
    r"""Upper bound of the largest spectral norm of a stack of real matrices.

    The residual bounds (3) and (3') where they are tight, a verified Cholesky factor (4) elsewhere.
    Entries are first scaled by a power of two, so graded, huge and tiny matrices are no exception.

    Args:
        blocks: the matrices.
        embedded: whether they are complex ones as :func:`real_embedding` writes them, whose
            products are computed by halves.

    Raises:
        ValueError: an entry is not finite, or no Cholesky factor completes.

    Cost: one product W W^T a block, one more for (3'); for (4) its eigenvalues as a guess and one
    factorisation.

    Example:
        >>> 3.0 <= spectral_norm_bound(torch.diag(torch.tensor([3.0, -2.0]))[None]) < 3.0 + 1e-10
        True
    """
    scaled, scale = _scaled(blocks)
    if scale == 0.0:
        return 0.0
    wide = scaled if scaled.shape[1] <= scaled.shape[2] else scaled.mT
    gram = _gram(wide, embedded)
    error = gamma(wide.shape[2]) * _squares(wide) * UP + UNDERFLOW
    squared = _residual_bound(gram, error)
    for tighter in (partial(_squared_residual_bound, embedded=embedded), _cholesky_bound):
        loose = squared > gram.diagonal(dim1=1, dim2=2).mean(1) * (1.0 + RESIDUAL_ENOUGH)
        if gram.shape[1] <= ALWAYS_CHOLESKY:
            loose = torch.full_like(loose, tighter is _cholesky_bound)
        if bool(loose.any()):
            squared[loose] = torch.minimum(squared[loose], tighter(gram[loose], error[loose]))
    return float(squared.max().sqrt()) * UP * scale + DENORMAL


def _gram(wide: Tensor, embedded: bool) -> Tensor:
    """W W^T, exactly symmetric: one triangle decides."""
    half = wide.shape[1] // 2
    if not embedded:
        product = wide @ wide.mT
        return product.tril() + product.tril(-1).mT
    real, imaginary = (wide[:, :half] @ wide.mT).split(half, dim=2)
    lower = imaginary.tril(-1)
    return real_embedding(torch.stack((real.tril() + real.tril(-1).mT, lower.mT - lower), dim=1))


def real_embedding(pairs: Float[Tensor, "p 2 out in"]) -> Float[Tensor, "p rows columns"]:
    """Complex blocks as real matrices ``[[Re, -Im], [Im, Re]]`` of the same norm."""
    real, imaginary = pairs.unbind(1)
    top, bottom = torch.cat((real, -imaginary), dim=2), torch.cat((imaginary, real), dim=2)
    return torch.cat((top, bottom), dim=1)


def _scaled(blocks: Tensor) -> tuple[Tensor, float]:
    """The blocks in float64 divided by a power of two, and that power; 0 for zero blocks."""
    wide = blocks.detach().cpu().double()
    largest = max(map(abs, map(float, wide.aminmax()))) if wide.numel() else 0.0
    if not math.isfinite(largest):
        raise ValueError("weights must be finite, got NaN or infinity; train or load them again")
    if largest == 0.0:
        return wide, 0.0
    exponent = math.frexp(largest)[1]
    if exponent > LARGEST_EXPONENT:
        raise ValueError(
            f"weights must be below 2**{LARGEST_EXPONENT}, got {largest:.3e}; rescale the network"
        )
    half = exponent // 2  # two steps: 2^1074 is no float64 number
    return wide * 2.0**-half * 2.0 ** (half - exponent), 2.0**exponent


def _residual_bound(gram: Tensor, error: Tensor) -> Tensor:
    r"""(3): :math:`\|W\|^2 \le \theta + \|G - \theta I\|_F` with theta the mean of the diagonal."""
    residual, rest = _residual(gram)
    return (rest + _frobenius(residual) + error) * UP + UNDERFLOW


def _squared_residual_bound(gram: Tensor, error: Tensor, embedded: bool = False) -> Tensor:
    r"""(3'): :math:`\|W\|^2 \le \theta + \|(G - \theta I)^2\|_F^{1/2}`, about five times nearer
    where the residual is noise: it counts eigenvalues by their fourth powers."""
    residual, rest = _residual(gram)
    # The upper half of an embedded square holds all entries of the complex one.
    rows = gram.shape[1] // 2 if embedded else gram.shape[1]
    square = _frobenius(residual[:, :rows] @ residual)
    rounding = gamma(gram.shape[1]) * _squares(residual)
    norm = ((square + rounding) * UP + UNDERFLOW).sqrt()
    return (rest + norm + error) * UP + UNDERFLOW


def _residual(gram: Tensor) -> tuple[Tensor, Tensor]:
    """G - theta I, and theta with what its subtraction rounds."""
    rows = gram.shape[1]
    diagonal = gram.diagonal(dim1=1, dim2=2)
    centre = diagonal.mean(1)
    residual = gram - centre[:, None, None] * _eye(gram)
    return residual, centre + WIDE * rows**0.5 * (centre + diagonal.amax(1))


def _eye(gram: Tensor) -> Tensor:
    """The identity of the size of a stack and where it is, whatever the default device."""
    return torch.eye(gram.shape[1], dtype=gram.dtype, device=gram.device)


def _frobenius(stack: Tensor) -> Tensor:
    """Upper bounds of the Frobenius norms of a stack of matrices."""
    return _squares(stack).sqrt() * (1.0 + gamma(2))


def _squares(stack: Tensor) -> Tensor:
    """Upper bounds of their squares, but for squares that underflow."""
    return stack.square().sum((1, 2)) * (1.0 + gamma(stack[0].numel() + 2))


def _cholesky_bound(gram: Tensor, error: Tensor) -> Tensor:
    r"""(4): if the factorisation of :math:`\tau I - G` completes, no eigenvalue of G is above tau
    by more than the rounding errors of the factorisation."""
    rows = gram.shape[1]
    diagonal = gram.diagonal(dim1=1, dim2=2)
    guess = torch.linalg.eigvalsh(gram)[:, -1].clamp_min(UNDERFLOW)
    eye = _eye(gram)
    bound = torch.full_like(guess, torch.inf)
    for attempt in range(CHOLESKY_ATTEMPTS):
        shift = guess * (1.0 + 2.0**-40 * 16.0**attempt)
        shifted = shift[:, None, None] * eye - gram
        completed = torch.linalg.cholesky_ex(shifted).info == 0
        factor = compounded(gamma(rows + 1)) * (1.0 + gamma(rows))  # the trace is a sum of rows
        trace = shifted.diagonal(dim1=1, dim2=2).sum(1).clamp_min(0.0)
        rounding = WIDE * (shift + diagonal.amax(1)) + factor * trace + 2.0 * error
        found = (shift + rounding) * UP + UNDERFLOW
        bound = torch.where(completed & torch.isinf(bound), found, bound)
        if bool(torch.isfinite(bound).all()):
            return bound
    raise ValueError(
        f"no Cholesky factor of a shifted Gram matrix of {rows} rows completed, so its norm has "
        "no proof; check that the weights are finite numbers of ordinary size"
    )


def absolute_norm_bound(blocks: Float[Tensor, "b m n"]) -> float:
    r"""(5): upper bound of the largest :math:`\| |W| \|` by Collatz and Wielandt.

    For any v > 0, :math:`\||W|\|^2 \le \max_i (|W|^T |W| v)_i / v_i`.
    """
    scaled, scale = _scaled(blocks)
    if scale == 0.0:
        return 0.0
    magnitude = scaled.abs()
    vector = magnitude.new_ones(magnitude.shape[0], magnitude.shape[2], 1)
    largest, before = math.inf, math.inf
    for _ in range(PERRON_STEPS):
        product = magnitude.mT @ (magnitude @ vector)
        largest, before = float((product / vector).max()), largest
        if largest >= before * (1.0 - PERRON_GAIN):
            break
        scales = product.amax(1, keepdim=True).clamp_min(UNDERFLOW)
        vector = (product / scales).clamp_min(WIDE)  # positive, or the bound would divide by 0
    rounding = 1.0 + gamma(sum(magnitude.shape[1:]) + 2)
    squared = min(largest, before) * rounding * UP + UNDERFLOW
    return math.sqrt(squared) * UP * scale + DENORMAL


def in_chunks(stack: Tensor) -> Sequence[Tensor]:
    """Parts of a stack with about ``CHUNK_ENTRIES`` numbers each."""
    parts: Sequence[Tensor] = stack.split(max(1, CHUNK_ENTRIES // max(1, stack[:1].numel())))
    return parts


def pair_distance_bounds(rows: Float[Tensor, "c n"]) -> Float[Tensor, "c c"]:
    r"""(6): upper bounds :math:`d_{lk} \ge \|w_l - w_k\|`; zero on the diagonal."""
    scaled, scale = _scaled(rows[None])
    if scale == 0.0:
        return scaled.new_zeros(len(rows), len(rows))
    (row,) = scaled
    distance = torch.cdist(row, row, compute_mode="donot_use_mm_for_euclid_dist")
    bound = distance * (1.0 + 2.0 * gamma(row.shape[1] + 4)) * UP + math.sqrt(UNDERFLOW)
    return (bound * UP * scale + DENORMAL).fill_diagonal_(0.0)
