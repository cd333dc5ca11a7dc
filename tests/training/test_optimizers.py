"""Descent on the manifold: it stays there, and it descends."""

import pytest
import torch
from torch import nn

from unitmargin.models import UGNN
from unitmargin.orthogonal.cayley import cayley
from unitmargin.training.manifold_descent import MAXIMUM_STEP, ManifoldDescent, correct
from unitmargin.training.optimizers import build_optimizers

ON_MANIFOLD = 1e-5
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


def test_huge_gradients_and_rates_stay_within_the_cap() -> None:
    parameter, _ = nearest_problem(6, 8, False)
    optimizer = ManifoldDescent([parameter], lr=10.0)
    for _ in range(50):
        before = parameter.detach().clone()
        parameter.grad = 1e8 * torch.randn_like(parameter)
        optimizer.step()
        assert distance_from_manifold(parameter.detach()) < ON_MANIFOLD
        moved = torch.linalg.matrix_norm(parameter.detach() - before, ord=2)
        # The power steps underestimate the norm of a fresh random direction; never by half.
        assert float(moved.max()) < 2 * MAXIMUM_STEP


def test_a_zero_gradient_moves_nothing() -> None:
    parameter, _ = nearest_problem(3, 4, False)
    before = parameter.detach().clone()
    parameter.grad = torch.zeros_like(parameter)
    ManifoldDescent([parameter], lr=0.1).step()
    torch.testing.assert_close(parameter.detach(), before, rtol=0, atol=1e-6)


def test_stacks_move_in_turns_with_the_mean_of_their_gradients() -> None:
    parameters = [nearest_problem(rows, 8, False)[0] for rows in (8, 6, 6)]
    optimizer = ManifoldDescent(parameters, lr=0.01, interval=2)
    moved: list[list[bool]] = []
    for _ in range(4):
        before = [p.detach().clone() for p in parameters]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()
        moved.append(
            [not torch.equal(p.detach(), b) for p, b in zip(parameters, before, strict=True)]
        )
    # 8 x 8 x 8 products alone weigh as much as those of the two others, nearly.
    assert moved[0] == moved[2] != moved[1] == moved[3]
    assert [a != b for a, b in zip(moved[0], moved[1], strict=True)] == [True] * 3
    assert moved[0][1] == moved[0][2] != moved[0][0]


def test_two_equal_gradients_are_one_move() -> None:
    parameter, _ = nearest_problem(4, 6, False)
    other = nn.Parameter(parameter.detach().clone())
    gradient = torch.randn_like(parameter)
    for weight, interval in ((parameter, 1), (other, 2)):
        optimizer = ManifoldDescent([weight], lr=0.01, interval=interval)
        for _ in range(interval):
            weight.grad = gradient.clone()
            optimizer.step()
    torch.testing.assert_close(parameter, other, rtol=0, atol=1e-5)


def test_an_interval_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="interval must be at least 1"):
        ManifoldDescent([nearest_problem(3, 4, False)[0]], lr=0.1, interval=0)


def test_the_correction_squares_the_error() -> None:
    exact = cayley(torch.randn(2, 4, 6, dtype=torch.float64))
    near = exact + 1e-3 * torch.randn_like(exact)
    before = distance_from_manifold(near)
    assert distance_from_manifold(correct(near)) < 4 * before**2


def test_a_closure_is_refused() -> None:
    parameter, _ = nearest_problem(3, 4, False)
    with pytest.raises(ValueError, match="closure is not supported"):
        ManifoldDescent([parameter], lr=0.1).step(lambda: 0.0)


def test_every_parameter_belongs_to_exactly_one_optimizer() -> None:
    model = UGNN((1, 8, 8), 10, conv="manifold", linear="manifold")
    optimizers = build_optimizers(model, 1e-2, 1e-3)
    owned = [p for o in optimizers for group in o.param_groups for p in group["params"]]
    trainable = [p for p in model.parameters() if p.requires_grad]
    assert sorted(map(id, owned)) == sorted(map(id, trainable))
    rates = {type(o).__name__: o.param_groups[0]["initial_lr"] for o in optimizers}
    assert rates == {"Adam": 1e-2, "ManifoldDescent": 1e-3}


def test_parametrised_models_need_adam_alone() -> None:
    optimizers = build_optimizers(UGNN((1, 8, 8), 10), 1e-2, 1e-3)
    assert [type(o).__name__ for o in optimizers] == ["Adam"]


def test_a_parametrised_weight_on_the_manifold_is_refused() -> None:
    model = UGNN((1, 8, 8), 10, linear="manifold")
    nn.utils.parametrizations.weight_norm(model.features[-2], "raw")
    with pytest.raises(TypeError, match="weights on the manifold must be parameters, got a param"):
        build_optimizers(model, 1e-2, 1e-3)
