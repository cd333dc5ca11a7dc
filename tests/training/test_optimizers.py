"""Descent on the manifold: it stays there, and it descends."""

import math

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from unitmargin.models import UGNN
from unitmargin.orthogonal.cayley import cayley
from unitmargin.orthogonal.manifold import ManifoldConv2d, ManifoldLinear
from unitmargin.orthogonal.polar import polish
from unitmargin.training import manifold_descent
from unitmargin.training.manifold_descent import (
    LARGEST_ANGLE,
    QUINTICS,
    ManifoldDescent,
    correct,
    turn,
)
from unitmargin.training.optimizers import build_optimizers

ON_MANIFOLD = 5e-6
"""What the optimiser promises after every step, in float32."""


def distance_from_manifold(matrices: torch.Tensor) -> float:
    eye = torch.eye(matrices.shape[-2], dtype=matrices.dtype)
    return float((matrices @ matrices.mH - eye).abs().max())


def nearest_problem(rows: int, columns: int, paired: bool) -> tuple[nn.Parameter, torch.Tensor]:
    """A start and a target on the manifold, three matrices each."""
    dtype = torch.complex64 if paired else torch.float32
    start = cayley(0.1 * torch.randn(3, rows, columns, dtype=dtype))
    target = cayley(0.5 * torch.randn(3, rows, columns, dtype=dtype))
    if paired:
        start, target = (torch.stack((m.real, m.imag), dim=1) for m in (start, target))
    return nn.Parameter(start.contiguous()), target


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (4, 9), (1, 3)])
def test_it_reaches_a_target_and_never_leaves(rows: int, columns: int, paired: bool) -> None:
    parameter, target = nearest_problem(rows, columns, paired)
    group = {"params": [parameter], "paired": paired}
    optimizer = ManifoldDescent([group], lr=0.05)
    first = float((parameter.detach() - target).square().sum())
    for step in range(300):
        optimizer.param_groups[0]["lr"] = 0.05 * (1 - step / 300)
        loss = (parameter - target).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        matrices = parameter.detach()
        if paired:
            matrices = torch.complex(matrices[:, 0], matrices[:, 1])
        assert distance_from_manifold(matrices) < ON_MANIFOLD
    assert float((parameter.detach() - target).square().sum()) < 1e-3 * first


LONGEST = 1.9
"""The polynomials leave no singular value of a step above it."""


@pytest.mark.parametrize(("rows", "columns"), [(6, 8), (8, 8), (64, 64), (64, 256)])
def test_huge_gradients_and_rates_stay_within_the_cap(rows: int, columns: int) -> None:
    parameter, _ = nearest_problem(rows, columns, False)
    optimizer = ManifoldDescent([parameter], lr=10.0)
    for _ in range(20):
        before = parameter.detach().clone()
        parameter.grad = 1e8 * torch.randn_like(parameter)
        optimizer.step()
        assert distance_from_manifold(parameter.detach()) < ON_MANIFOLD
        moved = torch.linalg.matrix_norm(parameter.detach() - before, ord=2)
        assert 0.5 * LARGEST_ANGLE < float(moved.max()) < LONGEST * LARGEST_ANGLE


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (96, 130)])
def test_short_products_leave_no_stack_off_the_manifold(
    rows: int, columns: int, paired: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The halves of the real form of complex matrices are rounded apart."""
    monkeypatch.setattr(manifold_descent, "product_type", lambda *_: torch.bfloat16)
    monkeypatch.setattr(manifold_descent, "LARGE", 64)
    parameter, _ = nearest_problem(rows, columns, paired)
    optimizer = ManifoldDescent([{"params": [parameter], "paired": paired}], lr=0.12)
    for _ in range(10):
        parameter.grad = torch.randn_like(parameter)
        optimizer.step()
        matrices = parameter.detach()
        if paired:
            matrices = torch.complex(matrices[:, 0], matrices[:, 1])
        assert distance_from_manifold(matrices) < ON_MANIFOLD


@pytest.mark.parametrize("shape", [(4, 3, 8), (4, 2, 3), (2, 7, 20)])
def test_wide_matrices_keep_the_promise_at_the_cap(shape: tuple[int, ...]) -> None:
    for _ in range(30):
        start = torch.linalg.qr(torch.randn(*shape).mT).Q.mT.contiguous()
        parameter = nn.Parameter(polish(start.double()).float())
        parameter.grad = torch.randn_like(parameter)
        ManifoldDescent([parameter], lr=1.0).step()
        assert distance_from_manifold(parameter.detach()) < ON_MANIFOLD


def test_what_is_not_to_be_trained_stays() -> None:
    model = UGNN((1, 4, 4), 3, depth=1, conv="manifold", linear="manifold")
    model(torch.rand(2, 1, 4, 4)).sum().backward()
    fixed = next(layer for layer in model.features if isinstance(layer, ManifoldLinear))
    fixed.requires_grad_(False)
    before = fixed.raw.clone()
    for optimizer in build_optimizers(model, 1e-2, 1e-2):
        optimizer.step()
    assert torch.equal(fixed.raw, before)
    with pytest.raises(ValueError, match="and set requires_grad of what is to be trained"):
        build_optimizers(model.requires_grad_(False), 1e-2, 1e-2)


@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e12])
def test_the_size_of_a_gradient_does_not_matter(factor: float) -> None:
    parameter, _ = nearest_problem(8, 8, False)
    other = nn.Parameter(parameter.detach().clone())
    gradient = torch.randn_like(parameter)
    for weight, size in ((parameter, 1.0), (other, factor)):
        weight.grad = size * gradient
        ManifoldDescent([weight], lr=0.05).step()
    torch.testing.assert_close(parameter, other, rtol=0, atol=2e-3)


@pytest.mark.parametrize("condition", [1.0, 100.0])
def test_all_directions_turn_by_about_the_rate(condition: float) -> None:
    start = torch.eye(32)[None]
    left, _, right = torch.linalg.svd(torch.randn(1, 32, 32))
    momentum = left * torch.logspace(0.0, -math.log10(condition), 32) @ right
    moved = turn(start, momentum, 0.05)
    angles = torch.linalg.eigvals(moved.double()).angle().abs() / 0.05
    # The skew part of 32 directions has 16 angles, each twice, and condition numbers of its own.
    assert float(angles.max()) < LONGEST
    assert float(angles.median()) > 0.5


def test_float64_weights_move_in_float64() -> None:
    parameter, _ = nearest_problem(6, 6, False)
    parameter = nn.Parameter(polish(parameter.detach().double()))
    parameter.grad = torch.randn_like(parameter)
    ManifoldDescent([parameter], lr=0.01).step()
    assert distance_from_manifold(parameter.detach()) < 1e-13


@pytest.mark.parametrize("interval", [1, 8])
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 4)])
def test_a_zero_gradient_moves_nothing(
    rows: int, columns: int, paired: bool, interval: int
) -> None:
    """Not by the momentum of earlier gradients either, which decays."""
    parameter, _ = nearest_problem(rows, columns, paired)
    groups = [{"params": [parameter], "paired": paired}]
    optimizer = ManifoldDescent(groups, lr=0.1, interval=interval)
    for _ in range(interval):
        parameter.grad = torch.randn_like(parameter)
        optimizer.step()
    before, momentum = parameter.detach().clone(), optimizer.state[parameter]["momentum"].clone()
    for _ in range(2 * interval):
        parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
    assert torch.equal(parameter.detach(), before)
    decayed = momentum * 0.9 ** (2 * interval)
    torch.testing.assert_close(optimizer.state[parameter]["momentum"], decayed)


@pytest.mark.parametrize("paired", [False, True])
def test_matrices_of_a_stack_wait_for_themselves(paired: bool) -> None:
    """The others take the steps that they take alone."""
    parameter, _ = nearest_problem(4, 4, paired)
    other = nn.Parameter(parameter.detach().clone())
    gradients = torch.randn(2, *parameter.shape)
    for weight, led in ((parameter, [0, 1, 2]), (other, [0, 2])):
        optimizer = ManifoldDescent([{"params": [weight], "paired": paired}], lr=0.05)
        before = weight.detach().clone()
        for number, gradient in enumerate(gradients):
            weight.grad = gradient.clone()
            if number:
                before = weight.detach().clone()
                weight.grad[[m for m in range(3) if m not in led]] = 0.0
            optimizer.step()
        still = [torch.equal(*pair) for pair in zip(weight.detach(), before, strict=True)]
        assert still == [matrix not in led for matrix in range(3)]
    assert torch.equal(parameter[[0, 2]], other[[0, 2]])


def test_a_solution_is_not_walked_away_from() -> None:
    torch.manual_seed(0)
    model, y = ManifoldLinear(6, 4, bias=False), torch.arange(16) % 4
    x = 3.0 * torch.eye(6)[y] + 0.1 * torch.randn(16, 6)
    (optimizer,) = build_optimizers(model, 1e-2, 2e-2)
    losses = []
    for _ in range(300):
        loss = nn.functional.multi_margin_loss(model(x), y, margin=0.5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[0] > 0.0
    first = losses.index(0.0)
    assert losses[first:] == [0.0] * (300 - first)


def moves(
    optimizer: ManifoldDescent, parameters: list[nn.Parameter], steps: int
) -> list[list[bool]]:
    """Which parameters each of so many steps moves."""
    moved: list[list[bool]] = []
    for _ in range(steps):
        before = [p.detach().clone() for p in parameters]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()
        moved.append(
            [not torch.equal(p.detach(), b) for p, b in zip(parameters, before, strict=True)]
        )
    return moved


def test_stacks_move_in_turns_with_the_mean_of_their_gradients() -> None:
    parameters = [nearest_problem(rows, 8, False)[0] for rows in (8, 6, 6)]
    optimizer = ManifoldDescent(parameters, lr=0.01, interval=2)
    moved = moves(optimizer, parameters, 4)
    # 8 x 8 x 8 products alone weigh as much as those of the two others, nearly.
    assert moved[0] == moved[2] != moved[1] == moved[3]
    assert [a != b for a, b in zip(moved[0], moved[1], strict=True)] == [True] * 3
    assert moved[0][1] == moved[0][2] != moved[0][0]


@pytest.mark.parametrize(("interval", "every"), [(2, 1), (3, 1), (7, 1), (8, 2), (10, 2), (12, 3)])
def test_cheap_stacks_move_at_every_quarter_of_an_interval(interval: int, every: int) -> None:
    parameters = [nn.Parameter(torch.eye(size)[None]) for size in (16, 2, 3)]
    optimizer = ManifoldDescent(parameters, lr=0.01, interval=interval)
    moved = moves(optimizer, parameters, 2 * interval)
    dear, *cheap = zip(*moved, strict=True)
    assert [step for step, turn in enumerate(dear) if turn] == [0, interval]
    assert [[step for step, turn in enumerate(one) if turn] for one in cheap] == [
        list(range(0, 2 * interval, every))
    ] * 2


def test_a_stack_that_moves_less_often_moves_further() -> None:
    parameter, _ = nearest_problem(8, 8, False)
    other = nn.Parameter(parameter.detach().clone())
    gradient = torch.randn_like(parameter)
    moved = []
    for weight, interval in ((parameter, 1), (other, 4)):
        before = weight.detach().clone()
        weight.grad = gradient.clone()
        ManifoldDescent([weight], lr=0.01, interval=interval).step()
        moved.append(torch.linalg.matrix_norm(weight.detach() - before))
    torch.testing.assert_close(moved[1] / moved[0], torch.full((3,), 2.0), rtol=0.02, atol=0)


def test_products_are_those_of_the_stacks_that_move() -> None:
    parameters = [nn.Parameter(torch.eye(size)[None]) for size in (2, 16, 16)]
    every = ManifoldDescent(parameters, lr=0.1).products()
    assert every == (3 * len(QUINTICS) + 5) * (2**3 + 2 * 16**3)
    assert ManifoldDescent(parameters, lr=0.1, interval=4).products() == pytest.approx(
        (3 * len(QUINTICS) + 5) * (2**3 + 2 * 16**3 / 4)
    )


@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (8, 12)])
@pytest.mark.parametrize("paired", [False, True])
def test_products_are_those_that_are_made(rows: int, columns: int, paired: bool) -> None:
    """Wide moves make three products of rows x rows besides."""
    parameter, _ = nearest_problem(rows, columns, paired)
    parameter.grad = torch.randn_like(parameter)
    optimizer = ManifoldDescent([{"params": [parameter], "paired": paired}], lr=0.1)
    with FlopCounterMode(display=False) as counter:
        optimizer.step()
    side = 2 * rows if paired else rows
    besides = 0 if rows == columns else 3 * 3 * side**3  # of three matrices
    assert counter.get_total_flops() / 2 == optimizer.products() + besides


def test_a_complex_stack_is_as_dear_as_its_real_form() -> None:
    """Eight times as dear as a real one of as many rows: it alone takes turns."""
    real, pair = nn.Parameter(torch.eye(8)[None]), torch.zeros(1, 2, 8, 8)
    pair[:, 0] = torch.eye(8)
    paired = nn.Parameter(pair)
    groups = [{"params": [real], "paired": False}, {"params": [paired], "paired": True}]
    alone = ManifoldDescent([groups[1]], lr=0.1)
    assert alone.products() == 8 * ManifoldDescent([real], lr=0.1).products()
    assert ManifoldDescent(groups, lr=0.1, interval=8)._turns() == [(1, 8), (0, 8)]


def test_an_interval_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="interval must be >= 1, got 0; use 1, or 8"):
        ManifoldDescent([nearest_problem(3, 4, False)[0]], lr=0.1, interval=0)


def test_the_correction_squares_the_error() -> None:
    exact = cayley(torch.randn(2, 4, 6, dtype=torch.float64))
    near = exact + 1e-3 * torch.randn_like(exact)
    before = distance_from_manifold(near)
    assert distance_from_manifold(correct(near)) < 4 * before**2


def test_every_parameter_belongs_to_exactly_one_optimizer() -> None:
    model = UGNN((1, 8, 8), 10, conv="manifold", linear="manifold")
    optimizers = build_optimizers(model, 1e-2, 1e-3)
    owned = [p for o in optimizers for group in o.param_groups for p in group["params"]]
    trainable = [p for p in model.parameters() if p.requires_grad]
    assert sorted(map(id, owned)) == sorted(map(id, trainable))
    rates = {type(o).__name__: o.param_groups[0]["lr"] for o in optimizers}
    assert rates == {"Adam": 1e-2, "ManifoldDescent": 1e-3}


def test_a_weight_that_two_layers_share_moves_once() -> None:
    first, second = ManifoldLinear(4, 4, bias=False), ManifoldLinear(4, 4, bias=False)
    second.raw = first.raw
    alone = ManifoldLinear(4, 4, bias=False)
    with torch.no_grad():
        alone.raw.copy_(first.raw)
    gradient = torch.randn(4, 4)
    for model in (nn.Sequential(first, second), alone):
        (optimizer,) = build_optimizers(model, 1e-2, 1e-2)
        next(model.parameters()).grad = gradient.clone()
        optimizer.step()
    assert torch.equal(first.raw, alone.raw)
    convolution = ManifoldConv2d(2, 2, (3, 4))
    other = ManifoldConv2d(2, 2, (3, 4))
    other.pairs = convolution.pairs
    *_, descent = build_optimizers(nn.Sequential(convolution, other), 1e-2, 1e-2)
    assert [len(group["params"]) for group in descent.param_groups] == [2, 1]


def test_parametrised_models_need_adam_alone() -> None:
    optimizers = build_optimizers(UGNN((1, 8, 8), 10), 1e-2, 1e-3)
    assert [type(o).__name__ for o in optimizers] == ["Adam"]


def test_a_model_on_the_manifold_alone_needs_no_adam() -> None:
    optimizers = build_optimizers(ManifoldLinear(4, 3, bias=False), 1e-2, 1e-3)
    assert [type(o).__name__ for o in optimizers] == ["ManifoldDescent"]


def test_a_parametrised_weight_on_the_manifold_is_refused() -> None:
    model = UGNN((1, 8, 8), 10, linear="manifold")
    nn.utils.parametrizations.weight_norm(model.features[-2], "raw")
    with pytest.raises(TypeError, match="weights on the manifold must be parameters, got a param"):
        build_optimizers(model, 1e-2, 1e-3)
