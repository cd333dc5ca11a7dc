"""Optimisers from one call: weights on the manifold, and all others."""

from typing import Any

import torch
from torch import nn

from unitmargin.foundation.choice import require_kind
from unitmargin.foundation.numbers import require_amount, require_whole
from unitmargin.layers.contract import TrainableLayer
from unitmargin.training.joint_optimizer import JointOptimizer
from unitmargin.training.manifold_descent import ManifoldDescent


def build_optimizer(
    model: nn.Module,
    learning_rate: float,
    manifold_rate: float,
    sgd_momentum: float | None = None,
    weight_decay: float = 0.0,
    interval: int = 1,
) -> JointOptimizer:
    """One optimiser of all parameters, for loops that take one: Lightning, Accelerate, skorch.

    Its steps are bit for bit those of :func:`build_optimizers`, which says what the arguments mean.
    ``step`` takes a closure. Groups of free parameters come first, those of the manifold have the
    key ``paired``; schedules set the rates of all. ``OneCycleLR`` needs ``cycle_momentum=False``.

    Raises:
        TypeError, ValueError: as :func:`build_optimizers`.

    Example:
        >>> from unitmargin.models import UGNN
        >>> model = UGNN((1, 8, 8), 10, conv="manifold", linear="manifold")
        >>> optimizer = build_optimizer(model, 1e-2, 2e-2)
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.01, 0.02]
    """
    rates = learning_rate, manifold_rate, sgd_momentum, weight_decay, interval
    return JointOptimizer(build_optimizers(model, *rates))


def build_optimizers(
    model: nn.Module,
    learning_rate: float,
    manifold_rate: float,
    sgd_momentum: float | None = None,
    weight_decay: float = 0.0,
    interval: int = 1,
) -> list[torch.optim.Optimizer]:
    """Adam for free parameters, ManifoldDescent for those that ``manifold_parameters()`` names.

    With ``sgd_momentum`` free parameters go to SGD with that momentum instead. ``weight_decay``
    times the weight is added to the gradients of free parameters.

    Raises:
        TypeError: what is no module, a rate or interval that is no number, or a model whose weights
            on the manifold are parametrised.
        ValueError: a rate that is negative or not finite, or a model without parameters.

    Example:
        >>> from unitmargin.models import UGNN
        >>> model = UGNN((1, 8, 8), 10, conv="manifold", linear="manifold")
        >>> [type(o).__name__ for o in build_optimizers(model, 1e-2, 1e-2)]
        ['Adam', 'ManifoldDescent']
    """
    require_kind("model", model, nn.Module, "pass the model whose parameters are trained")
    rates = {"learning_rate": learning_rate, "manifold_rate": manifold_rate}
    momentum = 0.0 if sgd_momentum is None else sgd_momentum
    rates |= {"sgd_momentum": momentum, "weight_decay": weight_decay}
    for name, rate in rates.items():
        require_amount(name, rate, "pass a number such as 0.01")
    require_whole("interval", interval, 1, "use 1, or 8")
    real, paired = _on_manifold(model)
    known = {id(parameter) for parameter in (*real, *paired)}
    free, real, paired = (
        [parameter for parameter in parameters if parameter.requires_grad]
        for parameters in ([p for p in model.parameters() if id(p) not in known], real, paired)
    )
    if not (free or real or paired):
        raise ValueError(
            f"model must have parameters to train, got {type(model).__name__} without any; pass "
            "the model before it is frozen, and set requires_grad of what is to be trained"
        )
    shared: dict[str, Any] = {"lr": learning_rate, "weight_decay": weight_decay}
    optimizers: list[torch.optim.Optimizer] = []
    if free and sgd_momentum is None:
        optimizers.append(torch.optim.Adam(free, **shared))
    elif free:
        optimizers.append(torch.optim.SGD(free, momentum=momentum, **shared))
    if real or paired:
        groups = [{"params": real, "paired": False}, {"params": paired, "paired": True}]
        chosen = [group for group in groups if group["params"]]
        optimizers.append(ManifoldDescent(chosen, lr=manifold_rate, interval=interval))
    return optimizers


def _on_manifold(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The parameters that move on the manifold, real and paired; one that layers share is one."""
    moved = [m.manifold_parameters() for m in model.modules() if isinstance(m, TrainableLayer)]
    real = dict.fromkeys(parameter for parameters in moved for parameter in parameters.real)
    paired = dict.fromkeys(parameter for parameters in moved for parameter in parameters.paired)
    if not all(isinstance(parameter, nn.Parameter) for parameter in (*real, *paired)):
        raise TypeError(
            "weights on the manifold must be parameters, got a parametrisation of one, which does "
            "not stay there; call torch.nn.utils.parametrize.remove_parametrizations on its layer"
        )
    return list(real), list(paired)
