"""Several optimisers as one, for the loops that take one."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from unitmargin.training.manifold_descent import evaluated


class JointOptimizer(torch.optim.Optimizer):
    """Optimisers that step together, in order, and share their groups and state as one.

    Guarantee: steps equal bit for bit those of the optimisers on their own. ``param_groups`` are
    theirs in turn, and what is changed there is what the next step does, so schedules, gradient
    scalers, copies, pickles and ``state_dict`` are those of any torch optimiser; a state goes on in
    an optimiser that was built alike.

    Raises:
        ValueError: a parameter that two optimisers own, or a group that is added later.

    Cost: that of the optimisers.

    Example:
        >>> weight, bias = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
        >>> rules = torch.optim.SGD([weight], lr=0.5), torch.optim.SGD([bias], lr=0.25)
        >>> optimizer = JointOptimizer(rules)
        >>> (weight + bias).backward()
        >>> optimizer.step()
        >>> weight.item(), bias.item()
        (0.5, 0.75)
    """

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        super().__init__([group for o in optimizers for group in o.param_groups], {})
        for optimizer in optimizers:
            self.state.update(optimizer.state)
        self.optimizers = tuple(optimizers)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of each optimiser; the value of the closure, which is called once before."""
        loss = evaluated(closure)
        for optimizer, shared in self._shares():
            # Loops replace groups and state, when they load or move them.
            vars(optimizer).update(shared)
            optimizer.step()
        return loss

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if hasattr(self, "optimizers"):
            raise ValueError(
                "param_groups must be those of the model, got another one; build the optimiser "
                "again when the model has changed"
            )
        super().add_param_group(param_group)

    def _shares(self) -> list[tuple[torch.optim.Optimizer, dict[str, Any]]]:
        """Each optimiser with its groups and the state of all."""
        groups, shares = iter(self.param_groups), []
        for optimizer in self.optimizers:
            own = [next(groups) for _ in optimizer.param_groups]
            shares.append((optimizer, {"state": self.state, "param_groups": own}))
        return shares

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"optimizers": self.optimizers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for optimizer, shared in self._shares():
            optimizer.__setstate__(shared)
