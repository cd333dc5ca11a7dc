"""Descent on the orthogonal manifold."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

MAXIMUM_STEP = 0.04
"""Cap on the spectral norm of a step. One cubic correction leaves 0.75 |step|^4: 2e-6 at the cap,
and below 1e-5 even where the power steps underestimate the norm by a third."""

POWER_STEPS = 2
"""Power steps a move; the vector is kept between moves, so the estimate follows."""

INTERVAL = 2
"""Steps between two moves of a stack. Half of the products are saved; in two epochs of CIFAR-10
moving at every second gradient, with the mean of both, learned as fast as moving at every one."""

ZERO_GRADIENT = 1e-12
"""Norms below this are zero gradients: the matrix then stays where it is."""


class ManifoldDescent(torch.optim.Optimizer):
    r"""Momentum descent on stacks of matrices with orthonormal rows, real or complex.

    With M the momentum of the gradient, D its tangent part and v a running mean of its squared
    norm (one number a matrix),

    .. math:: D = \tfrac12 (M - X M^H X), \qquad
              Y = X - s D, \qquad X' = Y + \tfrac12 (I - Y Y^H) Y,

    where s is ``lr * sqrt(rows / v)``: a step of Frobenius norm ``lr`` times that of the weight,
    capped so that its spectral norm is at most ``MAXIMUM_STEP``. Four products of the weight's
    size a move, nothing else. The momentum takes in every gradient, but a stack moves only at
    every ``interval``-th, in turns, so that all steps cost about the same.

    Shapes: ``(*stack, rows, columns)`` with ``rows <= columns``; in a group with ``paired=True``
    ``(stack, 2, rows, columns)``, real and imaginary parts of complex matrices.
    Guarantee: ``max |X X^H - I| <= 1e-5`` after every step in float32, without accumulation, for
    a start on the manifold: the correction squares the error.
    Source: the tangent step with one cubic correction follows POGO (github.com/adrianjav/pogo);
    scale, cap and complex stacks are ours.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float,
        momentum: float = 0.9,
        decay: float = 0.99,
        interval: int = INTERVAL,
    ) -> None:
        if interval < 1:
            raise ValueError(f"interval must be at least 1, got {interval}; use 1 or 2")
        defaults = {"lr": lr, "momentum": momentum, "decay": decay, "paired": False}
        super().__init__(parameters, defaults)
        self.interval = interval

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        if closure is not None:
            raise ValueError("closure is not supported by ManifoldDescent; call backward first")
        for turn, (parameter, group) in zip(self._turns(), self._parameters(), strict=True):
            if parameter.grad is None:
                continue
            state = self._state(parameter, group)
            state["step"] += 1
            state["momentum"].lerp_(parameter.grad, 1.0 - group["momentum"])
            if int(state["step"]) % self.interval == turn:
                self._move(parameter, state, group)

    def _parameters(self) -> Iterator[tuple[Tensor, dict[str, Any]]]:
        for group in self.param_groups:
            for parameter in group["params"]:
                yield parameter, group

    def _turns(self) -> list[int]:
        """When in an interval each stack moves; the dearest first, to the idlest turn."""
        costs = [p.numel() * p.shape[-2] for p, _ in self._parameters()]
        loads = [0] * self.interval
        turns = [0] * len(costs)
        for index in sorted(range(len(costs)), key=costs.__getitem__, reverse=True):
            turns[index] = loads.index(min(loads))
            loads[turns[index]] += costs[index]
        return turns

    def _move(self, parameter: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one stack on the manifold; scalars of the state are kept one a matrix."""
        paired = group["paired"]
        x, momentum = (_matrices(t, paired) for t in (parameter, state["momentum"]))
        # Twice the tangent part, before bias correction: both factors go into the step size.
        direction = torch.baddbmm(momentum, x @ momentum.mH, x, alpha=-1.0)
        corrected = 1.0 - group["momentum"] ** float(state["step"])
        squared = torch.linalg.vector_norm(direction, dim=(-2, -1)).square() / corrected**2
        state["second"].lerp_(squared, 1.0 - group["decay"])
        moves = math.ceil(float(state["step"]) / self.interval)
        known = 1.0 - group["decay"] ** moves
        scale = (state["second"] / known).sqrt() * corrected
        spectral, vector = spectral_norm(direction, _matrices(state["vector"], paired))
        state["vector"] = _numbers(vector, paired)
        size = group["lr"] * x.shape[-2] ** 0.5 / scale.clamp_min(ZERO_GRADIENT)
        size = torch.minimum(size, MAXIMUM_STEP / spectral.clamp_min(ZERO_GRADIENT))
        moved = correct(torch.addcmul(x, size[:, None, None].to(x.dtype), direction, value=-1.0))
        parameter.copy_(_numbers(moved, paired).view_as(parameter))

    def _state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Momentum and power vector of the stack, second moment one number a matrix.

        All of them real: ``load_state_dict`` casts a state to the dtype of its parameter, which
        would drop imaginary parts.
        """
        state: dict[str, Any] = self.state[parameter]
        if not state:
            x = _matrices(parameter, group["paired"])
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["momentum"] = torch.zeros_like(parameter)
            state["second"] = torch.zeros_like(x[:, 0, 0].real)
            state["vector"] = _numbers(torch.ones_like(x[:, :1, :]), group["paired"])
        return state


def _matrices(numbers: Tensor, paired: bool) -> Tensor:
    """A stack of real matrices, or of complex ones from pairs of real and imaginary part."""
    if paired:
        return torch.complex(numbers[:, 0], numbers[:, 1])
    return numbers.view(-1, *numbers.shape[-2:])


def _numbers(matrices: Tensor, paired: bool) -> Tensor:
    """Inverse of ``_matrices``."""
    return torch.stack((matrices.real, matrices.imag), dim=1) if paired else matrices


def spectral_norm(matrix: Tensor, vector: Tensor) -> tuple[Tensor, Tensor]:
    """Estimate of the largest singular value by power steps from the given row vector."""
    for _ in range(POWER_STEPS):
        image = vector @ matrix.mH
        vector = torch.nn.functional.normalize(image @ matrix, dim=-1)
    return torch.linalg.vector_norm(vector @ matrix.mH, dim=(-2, -1)), vector


def correct(matrix: Tensor) -> Tensor:
    """One cubic Newton-Schulz step, ``Y + (I - Y Y^H) Y / 2``: squares the orthogonality error."""
    return torch.baddbmm(matrix, matrix @ matrix.mH, matrix, beta=1.5, alpha=-0.5)
