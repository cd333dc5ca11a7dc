"""Descent on the orthogonal manifold in steps that are orthogonal themselves."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from unitmargin.training.precision import product_type

QUINTIC = (3.4445, -4.7750, 2.0315)
"""Coefficients of x, x^3 and x^5 that drive singular values in (0, 1] to about 1; those of Muon
(github.com/KellerJordan/Muon)."""

QUINTIC_STEPS = 5
"""Singular values of a step end between 0.7 and 1.2 from a condition number of a few hundred."""

DEAR_SHARE = 0.9
"""The dearest stacks that make up this share of the cost of all moves take turns."""

NO_GRADIENT = 1e-30
"""Added to the norm of a gradient before it divides: a gradient of zeros leaves a weight alone."""


class ManifoldDescent(torch.optim.Optimizer):
    r"""Spectral descent on stacks of matrices with orthonormal rows, real or complex.

    With M the momentum of the gradient (Nesterov's, where a stack moves at every step), D its
    tangent part and S an approximate polar factor of D,

    .. math:: D = \tfrac12 (M - X M^H X), \quad Y = X - \eta S, \quad
              X' = (I + \tfrac12 R + \tfrac38 R^2)\, Y, \quad R = I - Y Y^H.

    Every singular value of S is about 1, so all directions move by about ``lr`` radians, whatever
    the gradient's size; rates transfer between widths and networks. S comes from ``QUINTIC_STEPS``
    odd quintic iterations in the type of products that the processor is fast in, bfloat16 or
    float32; where X is not square, S loses its normal part again. X and R are computed in the
    parameter's own type.

    With ``interval`` k the dearest stacks, which make most of the cost, move at every k-th step
    only, in turns, with rate :math:`\eta \sqrt k`; their momentum takes in every gradient.

    Shapes: ``(*stack, rows, columns)`` with ``rows <= columns``; in a group with ``paired=True``
    ``(stack, 2, rows, columns)``, real and imaginary parts of complex matrices.
    Guarantee: ``max |X X^H - I| <= 5e-6`` after every step in float32 for
    :math:`\eta \sqrt k \le 0.1`, without accumulation, for a start on the manifold: each move
    measures R anew and leaves :math:`\tfrac5{16} |R|^3`, where :math:`|R| \le 1.5 \eta^2`.
    Cost: about 20 products with a square matrix of ``rows`` a move; see :meth:`products`.
    Source: Muon's rule on the tangent space; correction as in POGO (github.com/adrianjav/pogo).
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float,
        momentum: float = 0.9,
        interval: int = 1,
    ) -> None:
        if interval < 1:
            raise ValueError(f"interval must be at least 1, got {interval}; use 1, or 8")
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "paired": False})
        self.interval = interval

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        if closure is not None:
            raise ValueError("closure is not supported by ManifoldDescent; call backward first")
        for turn, (parameter, group) in zip(self._turns(), self._parameters(), strict=True):
            if parameter.grad is None:
                continue
            state = self._state(parameter)
            momentum = state["momentum"].mul_(group["momentum"]).add_(parameter.grad)
            every = 1 if turn is None else self.interval
            if int(state["step"]) % every == (turn or 0):
                ahead = every == 1
                aim = parameter.grad.add(momentum, alpha=group["momentum"]) if ahead else momentum
                self._move(parameter, aim, group["lr"] * every**0.5, group["paired"])
            state["step"] += 1

    def products(self) -> float:
        """Multiplications of one step, on average."""
        turns = zip(self._turns(), self._parameters(), strict=True)
        return sum(_cost(p) / (1 if turn is None else self.interval) for turn, (p, _) in turns)

    def _parameters(self) -> Iterator[tuple[Tensor, dict[str, Any]]]:
        for group in self.param_groups:
            for parameter in group["params"]:
                yield parameter, group

    def _turns(self) -> list[int | None]:
        """When in an interval each stack moves: the dearest in turns, each at the idlest one, all
        others at every step."""
        costs = [_cost(parameter) for parameter, _ in self._parameters()]
        turns: list[int | None] = [None] * len(costs)
        loads, counted = [0.0] * self.interval, 0.0
        for index in sorted(range(len(costs)), key=costs.__getitem__, reverse=True):
            if self.interval == 1 or counted >= DEAR_SHARE * sum(costs):
                break
            turn = turns[index] = loads.index(min(loads))
            loads[turn] += costs[index]
            counted += costs[index]
        return turns

    def _move(self, parameter: Tensor, aim: Tensor, size: float, paired: bool) -> None:
        """One step of one stack on the manifold."""
        x, momentum = _matrices(parameter, paired), _matrices(aim, paired)
        moved = correct(torch.sub(x, spectral_step(x, momentum), alpha=size))
        parameter.copy_(_numbers(moved, paired).view_as(parameter))

    def _state(self, parameter: Tensor) -> dict[str, Any]:
        state: dict[str, Any] = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["momentum"] = torch.zeros_like(parameter)
        return state


def _cost(parameter: Tensor) -> float:
    """Multiplications of one move: a product of the quintic iteration costs rows^2 columns, and so
    does each of the others."""
    return float((3 * QUINTIC_STEPS + 5) * parameter.numel() * parameter.shape[-2])


def _matrices(numbers: Tensor, paired: bool) -> Tensor:
    """A stack of real matrices; of complex ones, their real forms ``[[Re, -Im], [Im, Re]]``, which
    multiply, transpose and invert as they do."""
    if not paired:
        return numbers.reshape(-1, *numbers.shape[-2:])
    real, imaginary = numbers.unbind(1)
    top, bottom = torch.cat((real, -imaginary), dim=2), torch.cat((imaginary, real), dim=2)
    return torch.cat((top, bottom), dim=1)


def _numbers(matrices: Tensor, paired: bool) -> Tensor:
    """Inverse of ``_matrices``."""
    if not paired:
        return matrices
    real, imaginary = matrices[:, :, : matrices.shape[2] // 2].chunk(2, dim=1)
    return torch.stack((real, imaginary), dim=1)


def spectral_step(x: Tensor, momentum: Tensor) -> Tensor:
    """The tangent direction at X along the momentum, its singular values about 1 or 0."""
    short = product_type(x.device, x.dtype)
    scaled = _scaled(momentum)
    if x.shape[-2] == x.shape[-1]:
        # X skew(X^T M) is tangent by its form, whatever rounding does to the skew matrix.
        turn = x.to(short).mT @ scaled.to(short)
        step = x.to(short) @ quintic(_scaled(turn - turn.mT))
        return step.to(x.dtype)
    tangent = torch.baddbmm(scaled, x @ scaled.mT, x, alpha=-1.0)
    step = quintic(_scaled(tangent).to(short)).to(x.dtype)
    normal = step @ x.mT
    step -= 0.5 * (normal + normal.mT) @ x
    return step


def _scaled(matrices: Tensor) -> Tensor:
    """Each matrix divided by its Frobenius norm."""
    norms = torch.linalg.matrix_norm(matrices.float(), keepdim=True)
    return matrices / (norms + NO_GRADIENT).to(matrices.dtype)


def quintic(matrices: Tensor) -> Tensor:
    """Singular values of at most 1 driven to about 1, those of 0 kept."""
    first, third, fifth = QUINTIC
    for _ in range(QUINTIC_STEPS):
        gram = matrices @ matrices.mT
        powers = torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth)
        matrices = torch.baddbmm(matrices, powers, matrices, beta=first)
    return matrices


def correct(matrix: Tensor) -> Tensor:
    """Back to the manifold, ``Y + (R / 2 + 3 R^2 / 8) Y`` with ``R = I - Y Y^H``: cubes the error.

    The second-order term, thousands of times smaller than Y, is computed in the type that the
    processor is fast in.
    """
    short = product_type(matrix.device, matrix.dtype)
    eye = torch.eye(matrix.shape[-2], dtype=matrix.dtype, device=matrix.device)
    residual = torch.baddbmm(eye, matrix, matrix.mT, alpha=-1.0)
    first = residual @ matrix
    second = residual.to(short) @ first.to(short)
    return matrix.add(first, alpha=0.5).add_(second, alpha=0.375)
