"""T1 and T2: proved norms are never below the truth, and close to it where weights are orthogonal.

The truth of small matrices is exact: ``sigma I - W^T W`` is positive semidefinite in rationals.
"""

from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from jacobians import jacobian
from rational import is_upper_bound
from torch import Tensor

from unitmargin.frozen import CircularConvolution, ConvexCombination, Dense, spectral
from unitmargin.frozen.spectral import (
    RESIDUAL_ENOUGH,
    _cholesky_bound,
    _residual_bound,
    _squared_residual_bound,
    absolute_norm_bound,
    pair_distance_bounds,
    real_embedding,
    spectral_norm_bound,
)
from unitmargin.layers.activations import Abs
from unitmargin.layers.arithmetic import gamma
from unitmargin.layers.normalize import Normalize

TIGHT = 1e-6
"""Excess near orthogonal weights: what moves no digit of a radius that is read."""

SVD_ERROR = 1e-13
"""Relative error of LAPACK's singular values of the small matrices compared with."""


def test_the_exact_judge() -> None:
    matrix = torch.tensor([[3.0, 0.0], [4.0, 0.0]])  # norm 5
    assert is_upper_bound(5.0, matrix)
    assert not is_upper_bound(5.0 * (1 - 2.0**-52), matrix)


def random_matrix(index: int, generator: torch.Generator) -> Tensor:
    rows, columns = (int(torch.randint(1, 7, (1,), generator=generator)) for _ in range(2))
    matrix = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    if index % 3 == 1:
        matrix = torch.linalg.svd(matrix, full_matrices=False).U @ torch.eye(
            min(rows, columns), columns, dtype=torch.float64
        )
    return matrix.to((torch.float64, torch.float32, torch.bfloat16)[index % 3])


@pytest.mark.parametrize("count", [1600, pytest.param(20_000, marks=pytest.mark.nightly)])
def test_t1_bounds_of_random_matrices_hold_exactly(count: int) -> None:
    generator = torch.Generator().manual_seed(1)
    for index in range(count):
        matrix = random_matrix(index, generator)
        bound = spectral_norm_bound(matrix[None])
        assert is_upper_bound(bound, matrix), matrix
        truth = float(torch.linalg.matrix_norm(matrix.double(), 2))
        assert bound <= truth * (1 + TIGHT)


@pytest.mark.parametrize("seed", range(400))
def test_t1_stacks_of_many_sizes_against_singular_values(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(1, 40, (3,), generator=generator).tolist()
    blocks = torch.randn(*sizes, generator=generator, dtype=torch.float64)
    truth = float(torch.linalg.svdvals(blocks).max())
    bound = spectral_norm_bound(blocks)
    assert truth * (1 - SVD_ERROR) <= bound <= truth * (1 + TIGHT)
    magnitude = float(torch.linalg.svdvals(blocks.abs()).max())
    assert magnitude * (1 - SVD_ERROR) <= absolute_norm_bound(blocks) <= magnitude * 1.05


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(300, 500), (300, 300), (500, 300)])
def test_t1_large_orthogonal_weights_are_tight(shape: tuple[int, int], dtype: torch.dtype) -> None:
    raw = torch.randn(max(shape), min(shape), dtype=torch.float64)
    weight = torch.linalg.qr(raw).Q.to(dtype)
    weight = weight if shape[0] >= shape[1] else weight.mT
    truth = float(torch.linalg.svdvals(weight.double()).max())
    assert truth * (1 - SVD_ERROR) <= spectral_norm_bound(weight[None]) <= truth + TIGHT


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 4), (5, 3)])
def test_t1_convolutions_against_their_jacobian(size: tuple[int, int]) -> None:
    height, width = size
    real = (2 - height % 2) * (2 - width % 2)
    pairs = (height * width - real) // 2
    layer = CircularConvolution(
        torch.randn(real, 3, 2).double(), torch.randn(pairs, 2, 3, 2).double(),
        torch.randn(3).double(), size,
    )  # fmt: skip
    matrix = jacobian(layer, torch.zeros(2, *size).double())
    truth = float(torch.linalg.matrix_norm(matrix, 2))
    constants = layer.constants()
    assert truth * (1 - SVD_ERROR) <= constants.norm <= truth * (1 + TIGHT)
    magnitudes = (layer.real.abs(), real_embedding(layer.pairs).abs())
    absolute = max([float(n) for m in magnitudes for n in torch.linalg.matrix_norm(m, 2)])
    assert absolute * (1 - SVD_ERROR) <= constants.absolute <= absolute * 1.05
    shift = layer(torch.zeros(1, 2, *size).double()).norm()
    assert float(shift) * (1 - SVD_ERROR) <= constants.bias <= float(shift) * (1 + TIGHT)


def rounded_unitary(rows: int, columns: int) -> Tensor:
    """Pairs of two complex blocks with orthonormal rows, or columns, as float32 holds them."""
    raw = torch.randn(2, max(rows, columns), min(rows, columns), dtype=torch.complex128)
    frame = torch.linalg.qr(raw).Q
    blocks = frame if rows >= columns else frame.mH
    return torch.stack((blocks.real, blocks.imag), dim=1).float()


@pytest.mark.parametrize("shape", [(300, 300), (270, 400), (400, 270), (4, 6), (6, 4)])
def test_t1_complex_blocks_are_tight(shape: tuple[int, int]) -> None:
    """The bound of the halves is that of the whole embedding, above the truth and near it."""
    pairs = rounded_unitary(*shape)
    wide = pairs.double()
    truth = float(torch.linalg.svdvals(torch.complex(wide[:, 0], wide[:, 1])).max())
    halves = spectral_norm_bound(real_embedding(pairs), embedded=True)
    assert truth * (1 - SVD_ERROR) <= halves <= truth + TIGHT
    assert halves == pytest.approx(spectral_norm_bound(real_embedding(pairs)), rel=TIGHT)


@pytest.mark.parametrize("embedded", [False, True])
def test_the_squared_residual_is_reached(embedded: bool) -> None:
    """One large eigenvalue in each direction: there a Frobenius norm is near the spectral one."""
    size = 6
    deviation = torch.zeros(size, size, dtype=torch.float64)
    deviation[0, 0], deviation[1, 1] = 0.1, -0.1
    gram = torch.eye(size, dtype=torch.float64) + deviation
    whole = torch.block_diag(gram, gram) if embedded else gram
    none = torch.zeros(1, dtype=torch.float64)
    bound = float(_squared_residual_bound(whole[None], none, embedded))
    assert 1.1 <= bound <= 1.0 + 0.1 * 2.0**0.25 + 1e-9
    assert bound < float(_residual_bound(whole[None], none))


def test_large_noise_needs_no_factorisation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounded to float32, 900 rows: (3) is above what is enough, (3') is not."""
    monkeypatch.setattr(torch.linalg, "cholesky_ex", None)
    pairs = rounded_unitary(450, 450)
    gram = real_embedding(pairs.double())
    gram = gram @ gram.mT
    error = torch.zeros(2, dtype=torch.float64)
    assert float(_residual_bound(gram, error).min()) > 1.0 + RESIDUAL_ENOUGH
    assert spectral_norm_bound(real_embedding(pairs), embedded=True) < 1.0 + RESIDUAL_ENOUGH


def test_parts_of_a_stack_are_all_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded one block at a time, the constants are the same."""
    layer = CircularConvolution(
        torch.randn(1, 3, 2).double(), torch.randn(7, 2, 3, 2).double(),
        torch.zeros(3).double(), (3, 5),
    )  # fmt: skip
    whole = layer.constants()
    monkeypatch.setattr(spectral, "CHUNK_ENTRIES", 1)
    parts = layer.constants()
    assert parts.norm == pytest.approx(whole.norm, rel=1e-12)
    assert parts.absolute == pytest.approx(whole.absolute, rel=1e-12)


def test_complex_blocks_are_embedded() -> None:
    pairs = torch.randn(5, 2, 3, 4, dtype=torch.float64)
    complex_norms = torch.linalg.svdvals(torch.complex(pairs[:, 0], pairs[:, 1]))
    embedded = torch.linalg.svdvals(real_embedding(pairs))
    assert (embedded[:, ::2] - complex_norms).abs().max() <= SVD_ERROR * 10


def test_the_normalisation_is_rounded_up() -> None:
    layer = Normalize(torch.zeros(2), torch.tensor([0.3, 0.7]))
    assert Fraction(layer.constants().norm) >= 1 / Fraction(float(layer.std[0]))
    assert layer.constants().norm <= layer.norm() * (1 + 1e-11)


def test_pair_distances_hold_exactly() -> None:
    for dtype in (torch.float32, torch.float64):
        rows = torch.randn(5, 9, dtype=dtype)
        bounds = pair_distance_bounds(rows)
        exact = [[Fraction(value) for value in row] for row in rows.double().tolist()]
        for i in range(5):
            for j in range(5):
                squared = sum((a - b) ** 2 for a, b in zip(exact[i], exact[j], strict=True))
                assert Fraction(float(bounds[i, j])) ** 2 >= squared
                assert float(bounds[i, j]) <= float(squared) ** 0.5 * (1 + 1e-11)
        assert bounds.diagonal().tolist() == [0.0] * 5


# --- T2: adversarial weights -------------------------------------------------------------------


def hadamard(order: int) -> Tensor:
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while len(matrix) < order:
        matrix = torch.cat((torch.cat((matrix, matrix), 1), torch.cat((matrix, -matrix), 1)))
    return matrix


def unconverged(steps: int) -> Tensor:
    weight = torch.randn(6, 8, dtype=torch.float64)
    weight = weight / weight.norm()
    for _ in range(steps):
        weight = 1.5 * weight - 0.5 * weight @ weight.mT @ weight
    return weight


def nasty(generator: torch.Generator) -> list[Tensor]:
    base = torch.randn(6, 8, generator=generator, dtype=torch.float64)
    graded = 10.0 ** torch.linspace(-30, 30, 8, dtype=torch.float64)
    frame = torch.linalg.qr(base.mT).Q.mT
    huge_row = base.clone()
    huge_row[3] *= 1e12
    one_up = torch.eye(6, 8, dtype=torch.float64)
    one_up[2, 2] = 1.0 + 2.0**-52
    return [
        base * graded, base * graded.flip(0), base * 1e-310, base * 1e-160, base * 1e150,
        base[:, :1] @ base[:1], frame, torch.zeros(6, 8).double(), huge_row, one_up,
        frame.bfloat16().double(), frame.half().double(), hadamard(8), hadamard(8) / 8**0.5,
        unconverged(0), unconverged(1), unconverged(2), 5e-324 * torch.ones(3, 4).double(),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", [*range(28)])
def test_t2_adversarial_weights(seed: int) -> None:
    for matrix in nasty(torch.Generator().manual_seed(seed)):
        bound = spectral_norm_bound(matrix[None])
        assert is_upper_bound(bound, matrix), matrix
        absolute = absolute_norm_bound(matrix[None])
        assert is_upper_bound(absolute, matrix.abs()), matrix


def test_bounds_scale_with_powers_of_two() -> None:
    matrix = torch.randn(4, 5, dtype=torch.float64)
    for exponent in (-400, -3, 7, 400):
        scaled = spectral_norm_bound(2.0**exponent * matrix[None])
        assert scaled == 2.0**exponent * spectral_norm_bound(matrix[None])


@pytest.mark.parametrize("value", [torch.nan, torch.inf, 1e300])
def test_absurd_weights_are_refused(value: float) -> None:
    weight = torch.eye(3, dtype=torch.float64)
    weight[0, 1] = value
    with pytest.raises(ValueError, match="weights must be"):
        spectral_norm_bound(weight[None])


def test_power_iteration_would_fail_here() -> None:
    """The estimate that other libraries divide by lies below the truth; the exact judge sees it."""
    weight = Dense(torch.linalg.qr(torch.randn(12, 8).double()).Q.mT.float(), torch.zeros(8)).weight
    vector = torch.randn(12, 1, dtype=torch.float64)
    for _ in range(10):
        vector = weight.double().mT @ (weight.double() @ vector)
        vector = vector / vector.norm()
    estimate = float((weight.double() @ vector).norm())
    assert not is_upper_bound(estimate, weight)
    assert is_upper_bound(spectral_norm_bound(weight[None]), weight)


def test_gamma_needs_room() -> None:
    assert gamma(1) > 2.0**-53
    with pytest.raises(ValueError, match="must be in"):
        gamma(2**24, 2.0**-24)


@pytest.mark.parametrize("bound", [_residual_bound, _squared_residual_bound, _cholesky_bound])
def test_the_error_of_the_gram_matrix_is_paid_for(bound: Callable[..., Tensor]) -> None:
    gram = torch.eye(3, dtype=torch.float64)[None]
    none, some = torch.zeros(1).double(), torch.ones(1).double()
    factor = 2.0 if bound is _cholesky_bound else 1.0
    assert float(bound(gram, some) - bound(gram, none)) == pytest.approx(factor, rel=1e-9)


def test_a_guess_that_is_too_small_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eigenvalue solver that is wrong by 1 % costs attempts, never soundness."""
    exact = torch.linalg.eigvalsh
    monkeypatch.setattr(torch.linalg, "eigvalsh", lambda gram: 0.99 * exact(gram))
    matrix = torch.randn(5, 7, dtype=torch.float64)
    assert is_upper_bound(spectral_norm_bound(matrix[None]), matrix)


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 5), (5, 2)])
def test_convolutions_that_grow_or_shrink_channels(inputs: int, outputs: int) -> None:
    """The bound comes from the smaller Gram matrix of each block, and is the Jacobian's norm."""
    layer = CircularConvolution(
        torch.randn(2, outputs, inputs, dtype=torch.float64),
        torch.randn(5, 2, outputs, inputs, dtype=torch.float64),
        torch.zeros(outputs, dtype=torch.float64),
        (3, 4),
    )
    matrix = jacobian(layer, torch.zeros(inputs, 3, 4, dtype=torch.float64))
    truth = float(torch.linalg.matrix_norm(matrix, 2))
    assert truth * (1 - SVD_ERROR) <= layer.constants().norm <= truth * (1 + TIGHT)
    absolute = float(torch.linalg.matrix_norm(real_embedding(layer.pairs).abs(), 2).max())
    real = float(torch.linalg.matrix_norm(layer.real.abs(), 2).max())
    assert max(absolute, real) * (1 - SVD_ERROR) <= layer.constants().absolute
    assert layer.constants().absolute <= max(absolute, real) * 1.05


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_norm_of_a_combination_holds_exactly(share: float) -> None:
    """Where both paths agree the bound is reached."""
    eye = torch.eye(2, dtype=torch.float64)
    branch = [Dense(2.0 * eye, eye[0]), Abs(), Dense(3.0 * eye, eye[0])]
    layer = ConvexCombination(torch.tensor(share, dtype=torch.float32), branch)
    stored = Fraction(float(layer.share))
    truth = stored + (1 - stored) * 6
    found = layer.constants()
    assert truth <= Fraction(found.norm) <= truth * (1 + Fraction(1, 10**9))
    assert found.norm == layer.constants().norm
    assert [inner.bias > 0 for inner in found.branch] == [True, False, True]
