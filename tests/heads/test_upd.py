"""Unitary-pair-difference heads: the paper's matrices and the distances they promise."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jacobians import upd_error
from torch import Tensor

from unitmargin.heads import UPD_HEADS
from unitmargin.heads.upd import (
    BoundedUPD,
    LbfgsUPD,
    SimplexUPD,
    UPDHead,
    lbfgs_projection,
    psi,
    psi_gradient,
    simplex,
    squared_distances,
)
from unitmargin.orthogonal.polar import polar

UPD_PROMISE = 1e-6
"""Pair distances in float32, the promise of every head."""

EXACTNESS = 1e-12
"""Float64 sums of up to 100 terms of size 1."""

SAME_POINT = 1e-3
"""L-BFGS meets the exact projection up to the square of the deviation from the UPD set: rows of 512
entries that deviate by 0.01 each are 0.2 away, and end within 5e-4."""

CLASSES = [2, 10, 43, 100, 1000]


def projection(raw: Tensor) -> Tensor:
    """The exact projection on the UPD set, in float64."""
    points = simplex(raw.shape[0], torch.float64)
    return points @ polar(points.mT @ raw.double()) + raw.double().mean(0)


def features_for(classes: int) -> int:
    return max(64, classes + 24)


def moved(head: UPDHead, deviation: float) -> UPDHead:
    """The head with every entry of its free matrix moved at random, or of its frame on the
    manifold."""
    with torch.no_grad():
        head.raw += deviation * torch.randn_like(head.raw)
        if head.manifold_parameters().real:
            head.raw.copy_(polar(head.raw))
    return head


def pair_differences(classes: int) -> Tensor:
    """The matrix A^(C): one row e_h - e_k for each pair h < k, in order."""
    first, second = torch.triu_indices(classes, classes, offset=1)
    rows = torch.arange(first.numel())
    matrix = torch.zeros(first.numel(), classes)
    matrix[rows, first] = 1.0
    matrix[rows, second] = -1.0
    return matrix


def paper_matrix(classes: int) -> Tensor:
    """The recursive definition of A^(C) in the paper's appendix."""
    if classes == 2:
        return torch.tensor([[1.0, -1.0]])
    first = torch.cat((torch.ones(classes - 1, 1), -torch.eye(classes - 1)), dim=1)
    smaller = paper_matrix(classes - 1)
    rest = torch.cat((torch.zeros(len(smaller), 1), smaller), dim=1)
    return torch.cat((first, rest))


@pytest.mark.parametrize("classes", [2, 3, 4, 10, 43])
def test_pair_differences_follow_the_recursion(classes: int) -> None:
    assert torch.equal(pair_differences(classes), paper_matrix(classes))
    rows = [[1.0, -1.0, 0.0], [1.0, 0.0, -1.0], [0.0, 1.0, -1.0]]
    assert pair_differences(3).tolist() == rows


@given(st.integers(2, 20), st.integers(1, 20), st.integers(0, 99))
def test_psi_is_the_sum_over_pairs(classes: int, features: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(classes, features, generator=generator, dtype=torch.float64)
    squares = (pair_differences(classes).double() @ rows).square().sum(1)
    assert float(psi(rows) / ((squares - 1) ** 2).sum()) == pytest.approx(1.0, abs=EXACTNESS)
    first, second = torch.triu_indices(classes, classes, 1)
    torch.testing.assert_close(squared_distances(rows)[first, second], squares)


@pytest.mark.parametrize("classes", [1, 2, 10, 43])
def test_the_simplex_is_helmerts_basis_bit_for_bit(classes: int) -> None:
    points = torch.zeros(classes, classes - 1, dtype=torch.float64)
    for column in range(classes - 1):
        scale = ((column + 1) * (column + 2)) ** -0.5
        points[: column + 1, column] = scale
        points[column + 1, column] = -(column + 1) * scale
    assert torch.equal(simplex(classes, torch.float64), points / math.sqrt(2.0))


def test_psi_is_zero_at_the_simplex_alone() -> None:
    points = simplex(7, torch.float64)
    assert psi(points) <= EXACTNESS
    assert psi(1.1 * points) > 0.1


@given(st.integers(2, 12), st.integers(1, 12), st.integers(0, 99))
def test_psi_gradient_is_that_of_autograd(classes: int, features: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(classes, features, generator=generator, dtype=torch.float64)
    (expected,) = torch.autograd.grad(psi(rows.requires_grad_(True)), rows)
    torch.testing.assert_close(psi_gradient(rows.detach()), expected / classes)


@pytest.mark.parametrize("classes", CLASSES)
def test_the_simplex_is_regular_and_centred(classes: int) -> None:
    points = simplex(classes, torch.float64)
    assert points.shape == (classes, classes - 1)
    assert upd_error(points) <= EXACTNESS
    assert points.sum(0).abs().max() <= EXACTNESS


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("name", ["bounded", "simplex"])
def test_pair_distances_are_one(name: str, classes: int) -> None:
    head = moved(UPD_HEADS[name](features_for(classes), classes), 0.01)
    with torch.no_grad():
        weight = head.weight()
    assert weight.dtype == torch.float32
    assert upd_error(weight) <= UPD_PROMISE


@pytest.mark.parametrize("deviation", [0.0, 0.1])
@pytest.mark.parametrize("classes", CLASSES[:-1])
@pytest.mark.parametrize("name", ["bounded", "simplex"])
def test_pair_distances_are_one_at_the_start_and_far_from_it(
    name: str, classes: int, deviation: float
) -> None:
    head = moved(UPD_HEADS[name](features_for(classes), classes), deviation)
    with torch.no_grad():
        assert upd_error(head.weight()) <= UPD_PROMISE


@pytest.mark.parametrize(
    ("classes", "deviation"),
    [(2, 0.3), (10, 0.0), (10, 0.01), (10, 0.05), (10, 0.3), (43, 0.3), (100, 0.0), (100, 0.05)],
)
def test_pair_distances_of_lbfgs_are_one_from_near_and_far(classes: int, deviation: float) -> None:
    head = moved(LbfgsUPD(features_for(classes), classes), deviation)
    with torch.no_grad():
        assert upd_error(head.weight()) <= UPD_PROMISE


def test_pair_distances_of_lbfgs_are_one_for_1000_classes_at_the_start() -> None:
    """Its cost is that of the steps, so this asks for as many as the start needs."""
    head = LbfgsUPD(1024, 1000, steps=1)
    with torch.no_grad():
        assert upd_error(lbfgs_projection(head.raw, 8)) <= UPD_PROMISE


@pytest.mark.parametrize("start", ["gaussian", "small", "large"])
def test_lbfgs_reaches_the_upd_set_from_far_away(start: str) -> None:
    raw = {"gaussian": 1.0, "small": 0.02, "large": 10.0}[start] * torch.randn(10, 64)
    assert upd_error(lbfgs_projection(raw, 60)) <= UPD_PROMISE


@pytest.mark.parametrize("deviation", [0.01, 0.05, 0.3])
def test_lbfgs_does_not_jump_across_the_origin(deviation: float) -> None:
    """A first step of fixed length turns long rows round: the mirrored simplex is UPD as well."""
    head = moved(LbfgsUPD(512, 43), deviation)
    with torch.no_grad():
        weight = head.weight().double()
        assert (weight - projection(head.raw)).norm(dim=1).max() <= 0.05


@pytest.mark.parametrize("classes", [2, 10, 43])
def test_lbfgs_keeps_a_upd_matrix(classes: int) -> None:
    """Steps after convergence would follow rounding errors away from the start."""
    head = LbfgsUPD(512, classes)
    assert (head.weight() - head.raw).abs().max() <= UPD_PROMISE


def converged_torch_lbfgs(raw: Tensor) -> Tensor:
    """The paper's listing in float64, run until nothing moves."""
    rows = raw.double().clone().requires_grad_(True)
    optimizer = torch.optim.LBFGS(
        [rows], max_iter=60, tolerance_grad=1e-12, tolerance_change=0.0, history_size=10
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = psi(rows)
        loss.backward()
        return loss

    optimizer.step(closure)
    return rows.detach()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("deviation", [0.01, 0.02])
def test_simplex_is_the_converged_lbfgs_projection(deviation: float, seed: int) -> None:
    torch.manual_seed(seed)
    head = moved(SimplexUPD(512, 10), deviation)
    weight = head.weight().detach().double()
    converged = converged_torch_lbfgs(head.raw.detach())
    unrolled = lbfgs_projection(head.raw.detach().double(), 60)
    assert upd_error(converged) <= 1e-10
    for other in (converged, unrolled):
        assert (weight - other).norm(dim=1).max() <= SAME_POINT


def test_simplex_is_the_nearest_upd_matrix() -> None:
    head = moved(SimplexUPD(12, 5), 0.2)
    raw = head.raw.detach().double()
    best = (raw - head.weight().detach().double()).norm()
    for _ in range(50):
        other = projection(projection(raw) + 0.05 * torch.randn(5, 12))
        assert (raw - other).norm() > best
    assert (head.weight() - projection(raw)).abs().max() <= UPD_PROMISE


def test_the_gradient_of_lbfgs_is_that_of_its_steps() -> None:
    raw = (simplex(4, torch.float64) + 0.1 * torch.randn(4, 3)).requires_grad_(True)
    for steps in (1, 5, 30):
        assert torch.autograd.gradcheck(lambda rows, n=steps: lbfgs_projection(rows, n), raw)


@pytest.mark.parametrize("deviation", [0.0, 0.001, 0.01, 0.05])
@pytest.mark.parametrize("classes", [10, 43])
def test_the_gradient_of_lbfgs_stays_near_that_of_the_projection(
    classes: int, deviation: float
) -> None:
    """An unrolled iteration that goes on after convergence multiplies gradients by 1e10."""
    head = moved(LbfgsUPD(64, classes), deviation)
    direction = torch.randn(classes, 64)
    (mine,) = torch.autograd.grad((head.weight() * direction).sum(), head.raw)
    (exact,) = torch.autograd.grad((projection(head.raw) * direction).sum(), head.raw)
    assert (mine - exact).norm() <= 0.1 * exact.norm()


def test_bounded_rows_have_norm_one_over_root_two() -> None:
    weight = moved(BoundedUPD(20, 10), 0.1).weight()
    assert (weight.norm(dim=1) * math.sqrt(2) - 1).abs().max() <= UPD_PROMISE
    assert (weight @ weight.mT - 0.5 * torch.eye(10)).abs().max() <= UPD_PROMISE


@pytest.mark.parametrize("name", UPD_HEADS)
def test_freezing_centres_the_rows_and_keeps_all_margins(name: str) -> None:
    head = moved(UPD_HEADS[name](12, 5).double(), 0.05)
    with torch.no_grad():
        head.bias += torch.randn(5)
    frozen = head.freeze()
    x = torch.randn(20, 12, dtype=torch.float64)
    mine, other = head(x), frozen(x)
    margins = (mine[:, :, None] - mine[:, None, :]) - (other[:, :, None] - other[:, None, :])
    assert margins.abs().max() <= 1e-8  # the error at which L-BFGS stands still
    assert upd_error(frozen.weight) <= EXACTNESS
    assert frozen.weight.sum(0).abs().max() <= EXACTNESS


@pytest.mark.parametrize("name", ["simplex", "lbfgs"])
def test_one_feature_is_enough_for_two_classes(name: str) -> None:
    assert upd_error(UPD_HEADS[name](1, 2).weight()) <= UPD_PROMISE


@pytest.mark.parametrize(("name", "needed"), [("bounded", 10), ("simplex", 9), ("lbfgs", 9)])
def test_too_few_features_are_refused(name: str, needed: int) -> None:
    UPD_HEADS[name](needed, 10)
    with pytest.raises(ValueError, match=f"at least {needed} features for 10 classes, got"):
        UPD_HEADS[name](needed - 1, 10)


@pytest.mark.parametrize("name", UPD_HEADS)
def test_one_class_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="n_classes must be at least 2, got 1"):
        UPD_HEADS[name](8, 1)
