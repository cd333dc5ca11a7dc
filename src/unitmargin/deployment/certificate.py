"""Label and radius as nodes: equation (14) of docs/soundness.md, in the steps of ``certify``."""

import math

import torch
from torch import Tensor

from unitmargin.certificates.certify import DOWN, SMALLEST, steepness
from unitmargin.deployment.graph import Graph, Value
from unitmargin.deployment.layers import scaled_norms
from unitmargin.frozen.proof import normalising_error
from unitmargin.frozen.rounding import RoundingBounds
from unitmargin.layers.arithmetic import UP, gamma

LARGEST = torch.finfo(torch.float64).max
"""Above it there is infinity alone; NaN is not below it either."""


def write_certificate(
    graph: Graph, inputs: Value, normalised: Value, logits: Value, bounds: RoundingBounds
) -> dict[str, str]:
    """Nodes of label, runner-up, margin and radius, one a sample, and of the logits; by name.

    As :func:`unitmargin.certify` has them: a label of -1 and no claim where a number is not finite,
    the lower class first where logits are equal, no claim near overflow or among denormal numbers.
    """
    first = graph.integers([0])
    finite = _all_finite(graph, [inputs.name, logits.name])
    classes = graph.integers(torch.arange(logits.shape[0])[:, None])
    largest = graph.add("ReduceMax", logits.name, first, keepdims=1)
    label = graph.add("ArgMax", logits.name, axis=0, keepdims=0)
    own = graph.add("Equal", classes, graph.add("Unsqueeze", label, first))
    infinity = graph.number(math.inf)
    others = graph.add("Where", own, graph.number(-math.inf), logits.name)
    runner_up = graph.add("ArgMax", others, axis=0, keepdims=0)
    differences = graph.add("Sub", largest, logits.name)
    margin = graph.add(
        "Sub", _row(graph, largest), graph.add("ReduceMax", others, first, keepdims=0)
    )
    norms = _input_norms(graph, normalised, bounds, normalised.name != inputs.name)
    quotients = _quotients(graph, differences, label, norms, bounds)
    apart = graph.add("Where", own, infinity, quotients)
    radius = graph.add("ReduceMin", apart, first, keepdims=0)
    lowered = graph.add("Mul", radius, graph.number(DOWN))
    claimed = _claimed(graph, lowered, norms, bounds)
    nothing, none = graph.number(0.0), graph.integers(torch.tensor(-1))
    return {
        "label": graph.add("Where", finite, label, none),
        "runner_up": graph.add("Where", finite, runner_up, none),
        "margin": graph.add("Where", finite, margin, nothing),
        "radius": graph.add("Where", graph.add("And", finite, claimed), lowered, nothing),
        "logits": graph.add("Transpose", logits.name, perm=[1, 0]),
    }


def _row(graph: Graph, name: str) -> str:
    return graph.add("Squeeze", name, graph.integers([0]))


def _all_finite(graph: Graph, names: list[str]) -> str:
    """Whether all entries of a sample are numbers; NaN is less than or equal to nothing."""
    parts = []
    for name in names:
        small = graph.add("LessOrEqual", graph.add("Abs", name), graph.number(LARGEST))
        ones = graph.add("Where", small, graph.number(1.0), graph.number(0.0))
        least = graph.add("ReduceMin", ones, graph.integers([0]), keepdims=0)
        parts.append(graph.add("Equal", least, graph.number(1.0)))
    return graph.add("And", *parts)


def _input_norms(graph: Graph, x: Value, bounds: RoundingBounds, normalised: bool) -> str:
    """Upper bounds (18) of the norms of the exact normalised inputs, as ``Proof.input_norms``. What
    the product of root and largest entry may lose to underflow is added."""
    norms = scaled_norms(graph, x.name)
    factor = (1.0 + gamma(math.prod(x.shape) + 8)) * UP * UP
    lost = SMALLEST
    if normalised:
        more, tiny = normalising_error(bounds.input_scale)
        factor, lost = factor * more, lost + tiny
    raised = graph.add("Mul", norms, graph.number(factor * UP))
    return graph.add("Add", raised, graph.number(lost * UP))


def _quotients(
    graph: Graph, differences: str, label: str, norms: str, bounds: RoundingBounds
) -> str:
    """``(mu - 2 (alpha + beta rho)) / (L + beta S)`` of all classes, in the row of the label."""

    def of_label(pairs: Tensor) -> str:
        return graph.add("Gather", graph.numbers(pairs.mT.contiguous()), label, axis=1)

    steep = steepness(bounds.lipschitz, bounds.beta, bounds.input_scale)
    raised = graph.add("Mul", of_label(bounds.beta), norms)
    once = graph.add("Add", of_label(bounds.alpha), raised)
    slack = graph.add("Mul", once, graph.number(2.0))
    return graph.add("Div", graph.add("Sub", differences, slack), of_label(steep))


def _claimed(graph: Graph, radius: str, norms: str, bounds: RoundingBounds) -> str:
    """Whether the radius is no denormal number and nothing met within it is near overflow."""
    reached = graph.add("Mul", radius, graph.number(bounds.input_scale))
    slope = graph.add("Mul", graph.add("Add", norms, reached), graph.number(bounds.largest.slope))
    largest = graph.add("Add", slope, graph.number(bounds.largest.constant))
    below = graph.add("Less", largest, graph.number(bounds.limit))
    return graph.add("And", below, graph.add("GreaterOrEqual", radius, graph.number(SMALLEST)))
