"""Outside attacks as solvers: the same checks, the same float64 refinement, the same counts.

``pip install foolbox`` is enough for one library; adversarial-library 0.2.8 needs torchvision and
visdom beside it to import, and knows no case without the box.
"""

import importlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from unitmargin.solvers import Solver
from unitmargin.solvers.landing import PUSHES
from unitmargin.solvers.problem import Problem

Attack = Callable[[nn.Module, Tensor, Tensor], Tensor]
"""From network, inputs and labels to one point a sample."""

WIDE_BOUNDS = (-1e3, 1e3)
"""Bounds so wide that an attack which needs some never meets them."""

RATE = 0.01
"""Published learning rate of Carlini and Wagner in the variable of a box [0, 1]."""


class Counted(nn.Module):
    """The network, counting samples forward and backward for attacks that do not."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.forward_calls = self.backward_calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.forward_calls += len(x)
        logits: Tensor = self.model(x)
        if logits.requires_grad:
            logits.register_hook(self._count)
        return logits

    def _count(self, gradient: Tensor) -> None:
        self.backward_calls += len(gradient)


def outside(problem: Problem, attack: Attack) -> None:
    """One attack on the whole batch, and nothing but the points that it returns.

    Attacks that take a tie for a success get the outward moves that every solver gets at the end.
    """
    evaluator = problem.evaluator
    counted = Counted(evaluator.native).eval()
    inputs = problem.start.to(evaluator.dtype).reshape(-1, *evaluator.in_shape)
    moves = attack(counted, inputs, problem.labels).double().flatten(1) - problem.start
    for push in PUSHES:
        rows = torch.isinf(problem.best_distance).nonzero().squeeze(1)
        if len(rows) == 0:
            break
        points = problem.start[rows] + (1.0 + push) * moves[rows]
        problem.margin(problem.clamp(points), rows)
    problem.n_forward += counted.forward_calls // len(problem)
    problem.n_backward += counted.backward_calls // len(problem)


def references(boxed: bool, wagner_steps: int) -> dict[str, Solver]:
    """Attacks of the outside libraries that import; the others are named in one line."""
    made: dict[str, Solver] = {}
    for name, build in (("foolbox", foolbox_attacks), ("adv_lib", library_attacks)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                library = importlib.import_module(name)
                attacks = importlib.import_module(f"{name}.attacks")
        except ImportError as error:
            print(f"{name} is left out: {error}")
            continue
        built = build(attacks, library, boxed, wagner_steps)
        made |= {title: partial(outside, attack=attack) for title, attack in built.items()}
    return made


def foolbox_attacks(
    attacks: Any, library: Any, boxed: bool, wagner_steps: int
) -> dict[str, Attack]:
    """DDN, DeepFool and C&W of foolbox, which knows any bounds."""
    bounds = (0.0, 1.0) if boxed else WIDE_BOUNDS
    # The variable of the attack is in units of half the box.
    rate = RATE / (bounds[1] - bounds[0])
    wagner = attacks.L2CarliniWagnerAttack(steps=wagner_steps, stepsize=rate)
    made = {
        "foolbox DDN 100": attacks.DDNAttack(steps=100),
        "foolbox DDN 1000": attacks.DDNAttack(steps=1000),
        "foolbox DeepFool": attacks.L2DeepFoolAttack(),
        f"foolbox C&W 9 x {wagner_steps}": wagner,
    }

    def run(attack: Any, model: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
        wrapped = library.PyTorchModel(model, bounds=bounds, device=inputs.device)
        points: Tensor = attack(wrapped, inputs, labels, epsilons=None)[0]
        return points

    return {title: partial(run, attack) for title, attack in made.items()}


def library_attacks(
    attacks: Any, library: Any, boxed: bool, wagner_steps: int
) -> dict[str, Attack]:
    """DDN, ALMA and FAB of adversarial-library."""
    if not boxed:
        return {}
    return {
        "adversarial-library DDN 1000": partial(attacks.ddn, steps=1000, levels=None),
        "adversarial-library ALMA 100": partial(attacks.alma, num_steps=100, α=0.5),
        "adversarial-library ALMA 1000": partial(attacks.alma, num_steps=1000),
        "adversarial-library FAB 100": partial(attacks.fab, norm=2, n_iter=100),
        "adversarial-library FMN 100": partial(attacks.fmn, norm=2, steps=100),
    }
