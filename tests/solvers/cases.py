"""Networks and truths that several tests of the solvers share."""

import math
from functools import cache
from typing import Any

import torch
from exact import EXACT, ExactClassifier
from torch import Tensor, nn

import unitmargin as um
from unitmargin.frozen import FrozenNetwork
from unitmargin.solvers import SOLVERS

UNIT = "unit"
"""Two classes, or rows at equal distance: the runner-up is the nearest class."""

GENERAL = "general"
"""Rows of different length: the class of smallest margin need not be the nearest one."""

KINDS = {
    "affine": GENERAL,
    "unit_affine": UNIT,
    "stretched_affine": GENERAL,
    "sphere": UNIT,
    "box": "corners",
    "polyhedron": UNIT,
}

ACCURATE: dict[str, dict[str, Any]] = {
    "iterative_penalty": {"steps": 80, "searches": 4, "rate": 3e-2, "tolerance": 1e-3},
    "carlini_wagner": {"steps": 80, "searches": 5, "rate": 3e-2, "first_weight": 1.0},
}
"""Budgets that reach a few per cent in a second; the other solvers run as they come."""

QUICK: dict[str, dict[str, Any]] = {
    "iterative_penalty": {"steps": 60, "searches": 2, "rate": 5e-2},
    "carlini_wagner": {"steps": 40, "searches": 4, "rate": 5e-2, "first_weight": 1e-1},
    "ddn": {"steps": 20},
    "margin_ddn": {"steps": 20},
    "fmn": {"steps": 20},
    "alma": {"steps": 60},
}
"""Budgets for tests that ask for something else than accuracy."""

ONE_RAY = ("closed_form", "fast_outer_boundary", "closest_boundary")
"""Solvers that never leave the first direction and may miss the boundary."""

ITERATIVE = tuple(name for name in SOLVERS if name not in ONE_RAY)
"""Solvers that always find a point on the networks of these tests."""


@cache
def exact(name: str, dtype: torch.dtype, count: int = 16) -> tuple[ExactClassifier, Tensor, Tensor]:
    """A closed-form classifier, its first points and their labels."""
    truth = EXACT[name](dtype)
    inputs = truth.inputs[:count]
    return truth, inputs, truth.network(inputs).argmax(1)


@cache
def trained_ugnn() -> tuple[FrozenNetwork, Tensor, Tensor]:
    """A small UGNN trained on the digits, and 48 test digits that it labels correctly."""
    torch.manual_seed(0)
    data = um.load_dataset("digits")
    model = um.DenseUGNN(in_shape=data.test.in_shape, n_classes=10, hidden=(64, 32))
    um.train(model, data.train, data.test, epochs=4, quiet=True)
    frozen = um.freeze(model)
    inputs, labels = data.test.batch(slice(0, len(data.test)))
    correct = frozen(inputs).argmax(1) == labels
    return frozen, inputs[correct][:48], labels[correct][:48]


def piecewise_linear(inputs: int = 12, classes: int = 5) -> nn.Sequential:
    """A random ReLU network that uses all classes: no Lipschitz constant is known of it."""
    torch.manual_seed(1)
    head = nn.Linear(32, classes)
    model = nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), head)
    with torch.no_grad():
        head.bias -= model(torch.rand(100, inputs)).mean(0)
    return model


def labelled(model: nn.Module, count: int = 24, inputs: int = 12) -> tuple[Tensor, Tensor]:
    """Random inputs in [0, 1] and the model's own labels."""
    x = torch.rand(count, inputs, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        return x, model(x).argmax(1)


End = float | Tensor
"""Of a box: for all entries, or for each."""


def affine(weight: Tensor, bias: Tensor) -> nn.Linear:
    """``W x + b`` with given weights."""
    model = nn.Linear(weight.shape[1], weight.shape[0]).to(weight.dtype)
    with torch.no_grad():
        model.weight.copy_(weight)
        model.bias.copy_(bias)
    return model


def boxed_affine_distance(
    weight: Tensor,
    bias: Tensor,
    x: Tensor,
    labels: Tensor,
    low: End,
    high: End,
) -> Tensor:
    """Distance to the nearest point of the box with another label, for logits ``W x + b``.

    The optimality condition is ``p = clamp(x - t a)`` with a the difference of two rows and the
    margin of p zero; the margin falls with t, so t is found by bisection, class by class.
    """
    distances = torch.full((len(x), len(bias)), math.inf, dtype=torch.float64)
    for row, (start, label) in enumerate(zip(x.double(), labels.tolist(), strict=True)):
        for other in range(len(bias)):
            slope = weight[label] - weight[other]
            if other == label or _margin(slope, bias, label, other, start, 1e6, low, high) > 0:
                continue
            left, right = 0.0, 1e6
            for _ in range(200):
                middle = 0.5 * (left + right)
                above = _margin(slope, bias, label, other, start, middle, low, high) > 0
                left, right = (middle, right) if above else (left, middle)
            point = (start - right * slope).clamp(low, high)
            distances[row, other] = (point - start).norm()
    return distances.min(1).values


def _margin(
    slope: Tensor,
    bias: Tensor,
    label: int,
    other: int,
    start: Tensor,
    length: float,
    low: End,
    high: End,
) -> float:
    point = (start - length * slope).clamp(low, high)
    return float(slope @ point + bias[label] - bias[other])
