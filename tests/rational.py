"""Exact judgements of small matrices, in rational arithmetic."""

from fractions import Fraction

from torch import Tensor


def is_upper_bound(bound: float, matrix: Tensor) -> bool:
    """Exactly: ``bound^2 I - W W^T`` has no negative pivot, in rational arithmetic."""
    rows = [[Fraction(value) for value in row] for row in matrix.double().tolist()]
    if len(rows) > len(rows[0]):
        rows = [list(column) for column in zip(*rows, strict=True)]
    size = len(rows)
    work = [[-sum(map(Fraction.__mul__, a, b), Fraction(0)) for b in rows] for a in rows]
    for k in range(size):
        work[k][k] += Fraction(bound) ** 2
    for k in range(size):
        pivot = work[k][k]
        if pivot < 0 or (pivot == 0 and any(work[k][j] for j in range(k, size))):
            return False
        for i in range(k + 1, size) if pivot else ():
            factor = work[i][k] / pivot
            for j in range(k, size):
                work[i][j] -= factor * work[k][j]
    return True
