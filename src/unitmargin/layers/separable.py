r"""The orthonormal Fourier transform of a map as real products with one table a side.

With T_n the real Fourier matrix of n points (the cosines and sines of a map of n x 1), the
transform of an H x W map is :math:`Q\,(T_H \otimes T_W)`: products of the waves of both sides, by

.. math:: \cos(a + b) = \cos a \cos b - \sin a \sin b, \qquad
          \sin(a + b) = \sin a \cos b + \cos a \sin b,

are in pairs the waves of the map. Q is orthogonal, with at most two entries in each row and column.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from unitmargin.layers.fourier import Points, circular_matrix, frequencies
from unitmargin.layers.half_plane import Size

Side = Float64[Tensor, "n n"]


class Butterfly(NamedTuple):
    """A sparse matrix as two entries a row: column numbers and entries, both ``(n, 2)``."""

    columns: Int64[Tensor, "n 2"]
    entries: Float64[Tensor, "n 2"]

    def matrix(self) -> Float64[Tensor, "n n"]:
        """All entries, those that are zero too."""
        dense = torch.zeros(len(self.columns), len(self.columns), dtype=torch.float64)
        return dense.scatter_add(1, self.columns, self.entries)

    def transposed(self) -> "Butterfly":
        """The transpose, which has at most two entries a row as well."""
        rows: list[list[tuple[int, float]]] = [[] for _ in self.columns]
        pairs = zip(self.columns.tolist(), self.entries.tolist(), strict=True)
        for row, (columns, entries) in enumerate(pairs):
            for column, entry in zip(columns, entries, strict=True):
                if entry:
                    rows[column].append((row, entry))
        return _butterfly(rows)


class Separable(NamedTuple):
    """The transform of a map in factors: ``rows`` is T_H, ``columns`` T_W, and ``join`` Q.

    Its waves are in the order of their kinds: self-conjugate ones, cosines, sines.

    Example:
        >>> parts = separable((2, 3))
        >>> whole = parts.join.matrix() @ torch.kron(parts.rows, parts.columns)
        >>> bool((whole @ whole.mT - torch.eye(6)).abs().max() < 1e-14)
        True
    """

    rows: Side
    columns: Side
    join: Butterfly


@lru_cache
def separable(map_size: Size) -> Separable:
    """The factors of the transform of ``CircularTransform``, in float64 on the CPU, made once."""
    chosen = frequencies(*map_size)
    kept = [*chosen.real, *chosen.pairs]
    cosines = [_cosine(point, map_size) for point in kept]
    sines = [_sine(point, map_size) for point in chosen.pairs]
    rows, columns = (circular_matrix((side, 1)) for side in map_size)
    return Separable(rows, columns, _butterfly([_unit(terms) for terms in cosines + sines]))


def by_kind(map_size: Size) -> Int64[Tensor, " n"]:
    """Rows of the matrix of ``CircularTransform`` in the order of ``separable``: it has cosines and
    sines of each pair next to each other."""
    chosen = frequencies(*map_size)
    first, pairs = len(chosen.real), torch.arange(len(chosen.pairs))
    return torch.cat((torch.arange(first), first + 2 * pairs, first + 2 * pairs + 1))


Terms = list[tuple[int, float]]
"""Column and entry of the terms of a row."""


class _Wave(NamedTuple):
    """A wave of one side: numbers of its cosine and its sine in T_n, and the sign of the sine; it
    has no sine where the frequency is its own mirror image."""

    cosine: int
    sine: int | None
    sign: float


def _wave(frequency: int, side: int) -> _Wave:
    """Sines of ``T_n`` are negative; those of a frequency beyond the half are its mirror's."""
    chosen: Points = frequencies(side, 1).real
    folded = min(frequency, side - frequency)
    if (folded, 0) in chosen:
        return _Wave(chosen.index((folded, 0)), None, 0.0)
    first = len(chosen) + 2 * (folded - 1)
    return _Wave(first, first + 1, 1.0 if frequency == folded else -1.0)


def _cosine(point: tuple[int, int], map_size: Size) -> Terms:
    r""":math:`\cos(a + b) = \cos a \cos b - \sin a \sin b` of products of waves."""
    down, across = (_wave(*pair) for pair in zip(point, map_size, strict=True))
    width = map_size[1]
    terms = [(down.cosine * width + across.cosine, 1.0)]
    if down.sine is not None and across.sine is not None:
        terms.append((down.sine * width + across.sine, -down.sign * across.sign))
    return terms


def _sine(point: tuple[int, int], map_size: Size) -> Terms:
    r""":math:`-\sin(a + b)`, in which each term has one of the negative sines of a table."""
    down, across = (_wave(*pair) for pair in zip(point, map_size, strict=True))
    width = map_size[1]
    terms = []
    if down.sine is not None:
        terms.append((down.sine * width + across.cosine, down.sign))
    if across.sine is not None:
        terms.append((down.cosine * width + across.sine, across.sign))
    return terms


def _unit(terms: Terms) -> Terms:
    length = math.sqrt(len(terms))
    return [(column, entry / length) for column, entry in terms]


def _butterfly(rows: list[Terms]) -> Butterfly:
    """Rows of one or two terms; the second of one is zero."""
    columns = [[terms[0][0], terms[-1][0]] for terms in rows]
    entries = [[terms[0][1], terms[1][1] if len(terms) == 2 else 0.0] for terms in rows]
    return Butterfly(torch.tensor(columns), torch.tensor(entries, dtype=torch.float64))
