"""Descent on the orthogonal manifold in steps that are orthogonal themselves."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from unitmargin.foundation.full_precision import in_full_precision
from unitmargin.foundation.numbers import require_whole
from unitmargin.training.precision import product_type

QUINTICS = (
    (8.2051, -22.9019, 16.4607),
    (4.0664, -2.8611, 0.5184),
    (3.9096, -2.8234, 0.5250),
)
"""Coefficients of x, x^3 and x^5 of the odd polynomials that drive singular values to about 1, in
turn: the first three of the Polar Express (Amsel et al., arXiv 2505.16932), with its safety factor
of 1.01."""

LARGEST_ANGLE = 0.12
"""Cap on a step, in radians, beyond which its series and one correction lose float32 accuracy."""

LARGEST_SLIDE = 0.1
"""The same where matrices are wide, and two corrections stand for a series: what they leave grows
with the eighth power of the step, whose largest singular values are at 1.9."""

LARGE = 128
"""Rows from which on products are worth to be short: they gain nothing on smaller matrices, and
what they round makes trainings of one and of two processes differ in the third digit."""

DEAR_SHARE = 0.9
"""The dearest stacks that make up this share of the cost of all moves take turns."""

CHEAP_TURNS = 4
"""The other stacks move so many times in an interval that this divides, all at once."""

NO_GRADIENT = 1e-30
"""Added to the norm of a momentum before it divides: one of zeros stays zeros."""


def evaluated(closure: Callable[[], Any] | None) -> Any:
    """The value of the closure of a step, with gradients; None without one."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


class ManifoldDescent(torch.optim.Optimizer):
    r"""Spectral descent on stacks of matrices with orthonormal rows, real or complex.

    With M the momentum of the gradient (Nesterov's, where a stack moves at every step) and S an
    approximate polar factor, all of whose singular values are about 1 or 0,

    .. math:: X' = X \exp(-\eta S), \quad S \approx \mathrm{polar}(X^H M - M^H X)

    where X is square; elsewhere :math:`X' = X - \eta S`, S the tangent part of a
    :math:`\mathrm{polar}(M - X M^H X)`. Then :math:`Y + \tfrac12 (I - Y Y^H) Y` corrects what
    rounding left. So all directions turn by about ``lr`` radians, whatever the size of the
    gradient, and rates transfer between widths and networks. S comes from the polynomials
    ``QUINTICS`` in the type of products that the processor is fast in, bfloat16 or float32; the
    exponential is its series of degree 2. A matrix whose gradient is exactly zero at a step does
    not move then: its momentum, however small, would turn it at the full rate.

    With ``interval`` k the dearest stacks, which make most of the cost, move at every k-th step
    only, in turns, by :math:`\eta \sqrt k`, and the others likewise at every (k // 4)-th, below 8
    at every one; their momentum takes in every gradient.

    Shapes: ``(*stack, rows, columns)`` with ``rows <= columns``; in a group with ``paired=True``
    ``(stack, 2, rows, columns)``, real and imaginary parts of complex matrices.
    Guarantee: ``max |X X^H - I| <= 5e-6`` after every step in float32, at any rate, without
    accumulation, for a start on the manifold: each move measures its error in float32 and squares
    it. Angles are capped at ``LARGEST_ANGLE``, of wide matrices at ``LARGEST_SLIDE``.
    Cost: a move takes 14 products with a square matrix of ``rows``, one of them in float32; of a
    wide matrix 17, six of them in float32 and three of ``rows`` x ``rows`` alone. Complex matrices
    have twice the rows and columns. See :meth:`products`.
    Source: Muon's rule (github.com/KellerJordan/Muon) on the tangent space; correction as in POGO
    (github.com/adrianjav/pogo).
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float,
        momentum: float = 0.9,
        interval: int = 1,
    ) -> None:
        interval = require_whole("interval", interval, 1, "use 1, or 8")
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "paired": False})
        self.interval = interval

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; the value of the closure, which is called once before."""
        loss = evaluated(closure)
        due: dict[_Move, list[_Turn]] = {}
        for (when, every), (parameter, group) in zip(
            self._turns(), self._parameters(), strict=True
        ):
            if parameter.grad is None:
                continue
            state = self._state(parameter)
            momentum = state["momentum"].mul_(group["momentum"]).add_(parameter.grad)
            if int(state["step"]) % every == when:
                ahead = every == 1
                aim = parameter.grad.add(momentum, alpha=group["momentum"]) if ahead else momentum
                move = _Move.of(parameter, group["lr"] * every**0.5, group["paired"])
                due.setdefault(move, []).append(_Turn(parameter, parameter.grad, aim))
            state["step"] += 1
        for move, stacks in due.items():
            in_full_precision(move.make)(stacks)
        return loss

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"interval": self.interval}

    def products(self) -> float:
        """Multiplications of one step, on average, without those of ``rows`` x ``rows`` matrices
        where matrices are wide."""
        turns = zip(self._turns(), self._costs(), strict=True)
        return sum(cost / every for (_, every), cost in turns)

    def _costs(self) -> list[float]:
        return [_cost(parameter, group["paired"]) for parameter, group in self._parameters()]

    def _parameters(self) -> Iterator[tuple[Tensor, dict[str, Any]]]:
        for group in self.param_groups:
            for parameter in group["params"]:
                yield parameter, group

    def _turns(self) -> list[tuple[int, int]]:
        """At which of so many steps each stack moves: of an interval the dearest, each at the step
        that is idlest by then, and all others at every (interval // 4)-th, at least at each."""
        costs = self._costs()
        turns = [(0, max(1, self.interval // CHEAP_TURNS))] * len(costs)
        loads, counted = [0.0] * self.interval, 0.0
        for index in sorted(range(len(costs)), key=costs.__getitem__, reverse=True):
            if self.interval == 1 or counted >= DEAR_SHARE * sum(costs):
                break
            when = loads.index(min(loads))
            turns[index] = when, self.interval
            loads[when] += costs[index]
            counted += costs[index]
        return turns

    def _state(self, parameter: Tensor) -> dict[str, Any]:
        state: dict[str, Any] = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["momentum"] = torch.zeros_like(parameter)
        return state


class _Turn(NamedTuple):
    """A stack that is due to move, its gradient, and what it moves against."""

    parameter: Tensor
    gradient: Tensor
    aim: Tensor


class _Move(NamedTuple):
    """What stacks that move together have in common: they are one stack for every product."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    angle: float
    paired: bool

    @classmethod
    def of(cls, parameter: Tensor, angle: float, paired: bool) -> "_Move":
        shape, angle = tuple(parameter.shape[-2:]), min(angle, LARGEST_ANGLE)
        return cls(shape, parameter.dtype, parameter.device, angle, paired)

    def make(self, turns: Sequence[_Turn]) -> None:
        """Move each matrix against its aim, unless its gradient is zero."""
        starts = [_matrices(due.parameter, self.paired) for due in turns]
        x = _joined(starts)
        momentum = _joined([_matrices(due.aim, self.paired) for due in turns])
        led = torch.cat([_led(due.gradient, self.paired) for due in turns])
        moved = (turn if x.shape[-2] == x.shape[-1] else slide)(x, momentum, self.angle)
        moved = torch.where(led[:, None, None], moved, x)  # a condition would wait for the device
        parts = moved.split([len(start) for start in starts])
        for due, part in zip(turns, parts, strict=True):
            due.parameter.copy_(_numbers(part, self.paired).view_as(due.parameter))


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """One stack of all; of one it is that one."""
    return parts[0] if len(parts) == 1 else torch.cat(tuple(parts))


def _led(gradient: Tensor, paired: bool) -> Tensor:
    """Which matrices of a stack have a gradient that is not exactly zero."""
    stack = gradient if paired else gradient.reshape(-1, *gradient.shape[-2:])
    return stack.flatten(1).ne(0).any(1)


def _cost(parameter: Tensor, paired: bool) -> float:
    """Multiplications of one move: three products for each polynomial, and five others."""
    real_form = 4 if paired else 1  # twice the rows, and twice the numbers
    return float((3 * len(QUINTICS) + 5) * real_form * parameter.numel() * parameter.shape[-2])


def _matrices(numbers: Tensor, paired: bool) -> Tensor:
    """A stack of real matrices; of complex ones, their real forms ``[[Re, -Im], [Im, Re]]``, which
    multiply, transpose and invert as they do."""
    if not paired:
        return numbers.reshape(-1, *numbers.shape[-2:])
    real, imaginary = numbers.unbind(1)
    top, bottom = torch.cat((real, -imaginary), dim=2), torch.cat((imaginary, real), dim=2)
    return torch.cat((top, bottom), dim=1)


def _numbers(matrices: Tensor, paired: bool) -> Tensor:
    """Inverse of ``_matrices``: of a real form whose halves rounding made unlike, the nearest one,
    which is as orthogonal as the whole but for the square of their difference."""
    if not paired:
        return matrices
    (real, minus), (imaginary, again) = (half.chunk(2, dim=2) for half in matrices.chunk(2, dim=1))
    return torch.stack((0.5 * (real + again), 0.5 * (imaginary - minus)), dim=1)


def turn(x: Tensor, momentum: Tensor, angle: float) -> Tensor:
    """Square matrices turned by about ``angle`` against the momentum."""
    short = _short(x)
    brief = x.to(short)
    skew = brief.mT @ _scaled(momentum).to(short)
    skew = polar_factor(_scaled(skew - skew.mT))
    skew = (skew.mT - skew).mul_(0.5 * angle)  # rounding left a symmetric part
    series = torch.baddbmm(skew, skew, skew, alpha=0.5)
    return correct(x + (brief @ series).to(x.dtype))


def slide(x: Tensor, momentum: Tensor, angle: float) -> Tensor:
    """Wide matrices moved by about ``angle`` against the momentum."""
    short = _short(x)
    scaled = _scaled(momentum)
    tangent = torch.baddbmm(scaled, x @ scaled.mT, x, alpha=-1.0)
    step = polar_factor(_scaled(tangent).to(short)).to(x.dtype)
    normal = step @ x.mT
    step -= 0.5 * (normal + normal.mT) @ x
    # Without a series the first error is the square of the angle.
    return correct(correct(x - min(angle, LARGEST_SLIDE) * step))


def _short(matrices: Tensor) -> torch.dtype:
    """The type of products that may be short: small matrices gain nothing by it."""
    large = matrices.shape[-2] >= LARGE
    return product_type(matrices.device, matrices.dtype) if large else matrices.dtype


def _scaled(matrices: Tensor) -> Tensor:
    """Each matrix divided by its Frobenius norm."""
    wide = torch.promote_types(matrices.dtype, torch.float32)
    norms = torch.linalg.vector_norm(matrices, dim=(-2, -1), keepdim=True, dtype=wide)
    scaled: Tensor = matrices / (norms + NO_GRADIENT).to(matrices.dtype)
    return scaled


def polar_factor(matrices: Tensor) -> Tensor:
    """Singular values of at most 1 driven to about 1, those of 0 kept."""
    for first, third, fifth in QUINTICS:
        gram = matrices @ matrices.mT
        powers = torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth)
        matrices = torch.baddbmm(matrices, powers, matrices, beta=first)
    return matrices


def correct(matrix: Tensor) -> Tensor:
    """Back to the manifold, ``Y + R Y / 2`` with ``R = I - Y Y^H``: squares the error.

    R is computed in the type of Y. It is small, so its product may be short.
    """
    short = _short(matrix)
    eye = torch.eye(matrix.shape[-2], dtype=matrix.dtype, device=matrix.device)
    residual = torch.baddbmm(eye, matrix, matrix.mT, alpha=-1.0)
    back = residual.to(short) @ matrix.to(short)
    return matrix.add(back.to(matrix.dtype), alpha=0.5)
