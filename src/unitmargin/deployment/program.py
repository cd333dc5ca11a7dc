"""A frozen network as one graph: its layers and its certificate, from an input ``x`` to claims."""

import math

import torch

from unitmargin.deployment.certificate import write_certificate
from unitmargin.deployment.graph import DOUBLE, Graph, Value
from unitmargin.deployment.layers import write_layer
from unitmargin.frozen import FrozenNetwork
from unitmargin.frozen.profiles import PROFILES

INPUT = "x"


def write_program(frozen: FrozenNetwork) -> tuple[Graph, dict[str, str]]:
    """The network under the profile ``float64``, of any batch; the names of its claims by theirs.

    Claims are label, runner_up, margin, radius and logits.

    Raises:
        ValueError: a layer of a kind that has no nodes, or of unknown rounding.
    """
    graph = Graph()
    given = _inputs(graph, frozen.in_shape)
    bounds = frozen.kept_proof(PROFILES["float64"]).bounds
    x = normalised = given
    with torch.device("cpu"):  # whose tensors are arrays, whatever the default device
        for layer in frozen.features():
            x = write_layer(graph, layer, x)
            normalised = x if layer.normalises else normalised
        logits = write_layer(graph, frozen.head, x)
        return graph, write_certificate(graph, given, normalised, logits, bounds)


def _inputs(graph: Graph, in_shape: tuple[int, ...]) -> Value:
    """The inputs in float64, with the batch last."""
    wide = graph.add("Cast", INPUT, to=DOUBLE)
    entries = math.prod(in_shape)
    rows = graph.reshape(wide, -1, entries)
    return Value(graph.add("Transpose", rows, perm=[1, 0]), in_shape)
