"""A frozen network as an ONNX model: its layers, its certificate, and what the file states."""

import json
import math
from collections.abc import Mapping

import onnx
from onnx import TensorProto, helper

from unitmargin.deployment.certificate import write_certificate
from unitmargin.deployment.graph import IR_VERSION, OPSET, Graph, Value
from unitmargin.deployment.layers import write_layer
from unitmargin.frozen import FrozenNetwork
from unitmargin.frozen.profiles import PROFILES

OUTPUTS = {
    "label": TensorProto.INT64, "radius": TensorProto.DOUBLE, "margin": TensorProto.DOUBLE,
    "runner_up": TensorProto.INT64, "logits": TensorProto.DOUBLE,
}  # fmt: skip


INPUTS = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}


def onnx_model(
    frozen: FrozenNetwork, stated: Mapping[str, object], inputs: str = "float32"
) -> onnx.ModelProto:
    """The network under the profile ``float64``, with a dynamic batch; ``stated`` is its metadata.

    Raises:
        ValueError: a layer of a kind that has no nodes, or of unknown rounding.
    """
    graph = Graph()
    given = _inputs(graph, frozen.in_shape)
    bounds = frozen.proof(PROFILES["float64"]).bounds
    x = normalised = given
    for layer in frozen.features():
        x = write_layer(graph, layer, x)
        normalised = x if layer.normalises else normalised
    logits = write_layer(graph, frozen.head, x)
    certificate = write_certificate(graph, given, normalised, logits, bounds)
    for name, inner in certificate.items():
        graph.nodes.append(helper.make_node("Identity", [inner], [name]))
    shapes: dict[str, list[str | int]] = {"logits": ["batch", frozen.n_classes]}
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "unitmargin",
            [helper.make_tensor_value_info("x", INPUTS[inputs], ["batch", *frozen.in_shape])],
            [
                helper.make_tensor_value_info(name, kind, shapes.get(name, ["batch"]))
                for name, kind in OUTPUTS.items()
            ],
            graph.initializers,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="unitmargin",
    )
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in stated.items()
    }
    helper.set_model_props(model, texts)
    return model


def _inputs(graph: Graph, in_shape: tuple[int, ...]) -> Value:
    """The inputs in float64, with the batch last."""
    wide = graph.add("Cast", "x", to=TensorProto.DOUBLE)
    entries = math.prod(in_shape)
    rows = graph.reshape(wide, -1, entries)
    return Value(graph.add("Transpose", rows, perm=[1, 0]), in_shape)
