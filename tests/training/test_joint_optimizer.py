"""Several optimisers in one: the same steps, and all that a loop does with an optimiser."""

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from unitmargin.layers.activations import Abs
from unitmargin.orthogonal.manifold import ManifoldConv2d, ManifoldLinear
from unitmargin.training.joint_optimizer import JointOptimizer
from unitmargin.training.manifold_descent import ManifoldDescent
from unitmargin.training.optimizers import build_optimizer, build_optimizers

RATES = (1e-2, 2e-2)

Choices = dict[str, Any]

CHOICES: tuple[Choices, ...] = (
    {},
    {"interval": 3, "weight_decay": 0.01},
    {"sgd_momentum": 0.9, "weight_decay": 0.01},
)


def built(seed: int = 0) -> nn.Module:
    """Weights of all three kinds: free, real and complex on the manifold."""
    torch.manual_seed(seed)
    convolution = ManifoldConv2d(2, 2, (3, 4))
    return nn.Sequential(convolution, Abs(), nn.Flatten(), ManifoldLinear(24, 3))


INPUTS, LABELS = torch.linspace(-1, 1, 5 * 24).view(5, 2, 3, 4), torch.tensor([0, 1, 2, 0, 1])


def loss_of(model: nn.Module) -> Tensor:
    return nn.functional.cross_entropy(model(INPUTS), LABELS)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()


def same_weights(model: nn.Module, other: nn.Module) -> bool:
    pairs = zip(model.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(one, two) for one, two in pairs)


@pytest.mark.parametrize("choices", CHOICES)
def test_steps_are_bit_for_bit_those_of_the_optimisers_alone(choices: Choices) -> None:
    model, other = built(), built()
    optimizer = build_optimizer(model, *RATES, **choices)
    alone = build_optimizers(other, *RATES, **choices)
    for _ in range(5):
        train(model, optimizer, 1)
        other.zero_grad()
        loss_of(other).backward()
        for each in alone:
            each.step()
        assert same_weights(model, other)
    assert not same_weights(model, built())


def test_groups_are_those_of_the_optimisers_in_turn() -> None:
    model = built()
    groups = build_optimizer(model, *RATES).param_groups
    assert [group["lr"] for group in groups] == [RATES[0], RATES[1], RATES[1]]
    assert [("betas" in group, group.get("paired")) for group in groups] == [
        (True, None), (False, False), (False, True)
    ]  # fmt: skip
    owned = [p for group in groups for p in group["params"]]
    assert sorted(map(id, owned)) == sorted(id(p) for p in model.parameters() if p.requires_grad)


def test_schedules_of_torch_set_every_rate() -> None:
    model, other = built(), built()
    optimizer = build_optimizer(model, *RATES)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    alone = build_optimizers(other, *RATES)
    for step in range(3):
        train(model, optimizer, 1)
        schedule.step()
        other.zero_grad()
        loss_of(other).backward()
        for each in alone:
            for group in each.param_groups:
                group["lr"] = (RATES[0] if "betas" in group else RATES[1]) * 0.5**step
            each.step()
    assert same_weights(model, other)
    assert [group["lr"] for group in optimizer.param_groups] == [1e-2 / 8, 2e-2 / 8, 2e-2 / 8]


def test_a_schedule_starts_from_the_rates_of_the_moment() -> None:
    optimizer = build_optimizer(built(), *RATES)
    for group in optimizer.param_groups:
        group["lr"] = 1e-3
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    assert schedule.base_lrs == [1e-3, 1e-3, 1e-3]


def test_one_cycle_needs_no_cycled_momentum() -> None:
    model = built()
    optimizer = build_optimizer(model, *RATES)
    rates = [1e-2, 2e-2, 2e-2]
    cycle = torch.optim.lr_scheduler.OneCycleLR
    with pytest.raises(ValueError, match="momentum"):
        cycle(optimizer, max_lr=rates, total_steps=4)
    schedule = cycle(optimizer, max_lr=rates, total_steps=4, cycle_momentum=False)
    for _ in range(3):
        train(model, optimizer, 1)
        schedule.step()


def by_state(optimizer: JointOptimizer, model: nn.Module, seed: int) -> Any:
    """Another process: the state goes through a file."""
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    other = built(seed)
    other.load_state_dict(saved["model"])
    loaded = build_optimizer(other, 0.5, 0.5, interval=3)
    loaded.load_state_dict(saved["optimizer"])
    return other, loaded


def by_copy(optimizer: JointOptimizer, model: nn.Module, _: int) -> Any:
    return copy.deepcopy((model, optimizer))


def by_pickle(optimizer: JointOptimizer, model: nn.Module, _: int) -> Any:
    file = io.BytesIO()
    torch.save((model, optimizer), file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("way", [by_state, by_copy, by_pickle])
def test_a_training_goes_on_exactly(way: Callable[[JointOptimizer, nn.Module, int], Any]) -> None:
    model = built()
    optimizer = build_optimizer(model, *RATES, interval=3)
    train(model, optimizer, 4)
    other, restored = way(optimizer, model, 1)
    assert same_weights(model, other)
    before = copy.deepcopy(other.state_dict())
    train(model, optimizer, 4)
    assert all(torch.equal(v, before[k]) for k, v in other.state_dict().items())
    train(other, restored, 4)
    assert same_weights(model, other)


def test_a_copy_of_manifold_descent_keeps_its_interval() -> None:
    weight = nn.Parameter(torch.eye(3)[None])
    assert copy.deepcopy(ManifoldDescent([weight], lr=0.1, interval=4)).interval == 4


def test_replaced_groups_and_state_are_those_of_the_next_step() -> None:
    model, other = built(), built()
    optimizers = [build_optimizer(each, *RATES) for each in (model, other)]
    for each, optimizer in zip((model, other), optimizers, strict=True):
        train(each, optimizer, 1)
    optimizers[0].param_groups = [dict(group) for group in optimizers[0].param_groups]
    optimizers[0].state = copy.copy(optimizers[0].state)
    for each, optimizer in zip((model, other), optimizers, strict=True):
        optimizer.param_groups[-1]["lr"] = 1e-3
        train(each, optimizer, 2)
    assert same_weights(model, other)


@pytest.mark.parametrize("joint", [True, False])
def test_a_closure_is_called_once_with_gradients(joint: bool) -> None:
    weight, bias = nn.Parameter(torch.eye(2)[None]), nn.Parameter(torch.ones(2))
    descent = ManifoldDescent([weight], lr=0.05)
    optimizer = JointOptimizer([torch.optim.SGD([bias], lr=0.1), descent]) if joint else descent
    calls: list[Tensor] = []

    def closure() -> Tensor:
        assert torch.is_grad_enabled()
        optimizer.zero_grad()
        loss = (weight @ bias).square().sum() + weight[0, 0].sum()
        loss.backward()
        calls.append(loss.detach())
        return loss

    before = weight.detach().clone()
    with torch.no_grad():
        assert optimizer.step(closure) == calls[0]
    assert len(calls) == 1
    assert not torch.equal(weight.detach(), before)
    assert torch.equal(bias.detach(), torch.ones(2)) == (not joint)


def test_a_gradient_scaler_steps_as_if_it_were_absent() -> None:
    model, other = built(), built()
    optimizer = build_optimizer(model, *RATES)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(loss_of(model)).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    train(other, build_optimizer(other, *RATES), 3)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("broken", [0, -1])
def test_a_step_that_the_scaler_skips_changes_nothing(broken: int) -> None:
    model = built()
    optimizer = build_optimizer(model, *RATES)
    train(model, optimizer, 2)
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    scaler = torch.amp.GradScaler("cpu")
    optimizer.zero_grad()
    scaler.scale(loss_of(model)).backward()
    gradient = optimizer.param_groups[broken]["params"][0].grad
    assert gradient is not None
    gradient.view(-1)[0] = torch.inf
    scaler.step(optimizer)
    torch.testing.assert_close((model.state_dict(), optimizer.state_dict()), before, rtol=0, atol=0)


def test_gradients_are_cleared_in_every_group() -> None:
    model = built()
    optimizer = build_optimizer(model, *RATES)
    train(model, optimizer, 1)
    assert any(p.grad is not None for p in model.parameters())
    optimizer.zero_grad()
    assert all(p.grad is None for p in model.parameters())


def test_hooks_of_a_step_are_called_once() -> None:
    model = built()
    optimizer = build_optimizer(model, *RATES)
    calls: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    train(model, optimizer, 1)
    assert calls == ["before", "after"]


def test_a_group_that_is_added_is_refused() -> None:
    model = built()
    optimizer = build_optimizer(model, *RATES)
    with pytest.raises(ValueError, match="param_groups must be those of the model, got another"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    assert len(optimizer.param_groups) == 3


def test_a_parameter_of_two_optimisers_is_refused() -> None:
    weight = nn.Parameter(torch.ones(1))
    twice = [torch.optim.SGD([weight], lr=0.1), torch.optim.SGD([weight], lr=0.1)]
    with pytest.raises(ValueError, match="more than one parameter group"):
        JointOptimizer(twice)
