"""The checker's norms are never below the truth, in rational arithmetic, and close to it."""

import numpy as np
import pytest
import torch
from claims import orthogonal
from rational import is_upper_bound

from unitmargin.checker.arithmetic import gamma, own_length
from unitmargin.checker.bounds import absolute_norm, norms, pair_distances, spectral_norm
from unitmargin.checker.reading import Array

TIGHT = 1e-11
"""Relative excess of a proved norm of a small matrix."""


def matrices() -> dict[str, Array]:
    generator = np.random.default_rng(0)
    graded = np.diag(10.0 ** np.arange(-9, 9, 3)) @ generator.normal(size=(6, 6))
    base = orthogonal(5, 7).numpy()
    return {
        "wide": generator.normal(size=(3, 6)),
        "tall": generator.normal(size=(6, 2)),
        "graded": graded,
        "tiny": 1e-200 * generator.normal(size=(3, 3)),
        "large": 2.0**39 * generator.normal(size=(3, 3)),
        "orthogonal": base,
        "rounded": base.astype(np.float32).astype(np.float64),
        "coarse": orthogonal(5, 7).bfloat16().double().numpy(),
        "just above 1": np.eye(4) * (1 + 2.0**-52),
        "rank 1": np.outer(generator.normal(size=4), generator.normal(size=5)),
        "negative residual": np.diag([1.0, 1.0, 1.0, 0.1]),
        "hadamard": np.array([[1.0, 1.0], [1.0, -1.0]]),
        "one huge row": np.vstack([np.full(4, 1e12), np.eye(4)]),
        "zero row": np.array([[0.0, 0.0], [1.0, 2.0]]),
    }


@pytest.mark.parametrize("name", matrices())
def test_bounds_hold_exactly_and_are_tight(name: str) -> None:
    matrix = matrices()[name]
    bound = spectral_norm(matrix[None])
    assert is_upper_bound(bound, torch.tensor(matrix))
    assert bound <= np.linalg.norm(matrix, 2) * (1 + TIGHT) + 1e-140
    magnitude = absolute_norm(matrix[None])
    assert is_upper_bound(magnitude, torch.tensor(np.abs(matrix)))
    assert magnitude <= np.linalg.norm(np.abs(matrix), 2) * 1.1 + 1e-140


@pytest.mark.parametrize("seed", range(200))
def test_random_stacks(seed: int) -> None:
    generator = np.random.default_rng(seed)
    shape = generator.integers(1, 7, 3)
    blocks = generator.normal(size=shape) * 10.0 ** generator.integers(-3, 4)
    bound = spectral_norm(blocks)
    assert all(is_upper_bound(bound, torch.tensor(block)) for block in blocks)
    assert bound <= np.linalg.norm(blocks, 2, axis=(1, 2)).max() * (1 + TIGHT)
    magnitude = absolute_norm(blocks)
    assert all(is_upper_bound(magnitude, torch.tensor(np.abs(block))) for block in blocks)


@pytest.mark.parametrize("shape", [(300, 500), (500, 300), (400, 400)])
def test_large_orthogonal_weights_are_tight(shape: tuple[int, int]) -> None:
    weight = orthogonal(*shape).float().double().numpy()
    truth = np.linalg.norm(weight, 2)
    assert truth * (1 - 1e-14) <= spectral_norm(weight[None]) <= truth * (1 + 1e-10)


def test_zero_and_no_blocks() -> None:
    for shape in ((1, 2, 3), (0, 4, 4)):
        assert spectral_norm(np.zeros(shape)) == absolute_norm(np.zeros(shape)) == 0.0


def test_the_eigenvectors_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any orthogonal matrix in their place gives a bound, a larger one; others are refused."""
    matrix = matrices()["wide"]
    tight = spectral_norm(matrix[None])
    monkeypatch.setattr(np.linalg, "eigh", lambda a: (None, np.eye(3)[None]))
    loose = spectral_norm(matrix[None])
    assert loose > tight * 1.001
    monkeypatch.setattr(np.linalg, "eigh", lambda a: (None, 0.9 * np.eye(3)[None]))
    assert spectral_norm(np.diag([2.0, 1.0, 0.0])[None]) >= 2.0
    assert is_upper_bound(loose, torch.tensor(matrix))
    monkeypatch.setattr(np.linalg, "eigh", lambda a: (None, 0.5 * np.eye(3)[None]))
    with pytest.raises(ValueError, match="not orthogonal"):
        spectral_norm(matrix[None])


def test_the_error_of_the_gram_matrix_is_paid_for() -> None:
    """Of a Hadamard matrix G is exact and a multiple of I: all that is left is the error of G."""
    hadamard = np.array([[1.0]])
    for _ in range(6):
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    excess = spectral_norm(hadamard[None]) / 8.0 - 1.0
    assert 0.5 * gamma(64) * 64.0 * (1 - 1e-3) <= excess <= gamma(64) * 64.0


def test_pair_distances_are_upper_bounds() -> None:
    rows = np.random.default_rng(3).normal(size=(4, 6)).astype(np.float32).astype(np.float64)
    bounds = pair_distances(rows)
    for i in range(4):
        for j in range(4):
            assert is_upper_bound(float(bounds[i, j]), torch.tensor(rows[i] - rows[j])[None])
            assert bounds[i, j] <= np.linalg.norm(rows[i] - rows[j]) * (1 + TIGHT) + 1e-140


def test_norms_are_upper_bounds() -> None:
    values = np.random.default_rng(4).normal(size=(5, 2, 3))
    for bound, value in zip(norms(values), values, strict=True):
        assert is_upper_bound(float(bound), torch.tensor(value.reshape(1, -1)))


def test_arithmetic_by_hand() -> None:
    assert gamma(4, 0.125 / 2) == 1 / 3
    with pytest.raises(ValueError, match="no error bound"):
        gamma(2**23, 2.0**-24)
    assert [own_length(n) for n in (1, 64, 65, 128, 129, 3072)] == [1, 64, 65, 65, 66, 111]
