"""A frozen network as an ONNX model: its program, and what the file states."""

import json
from collections.abc import Mapping

import onnx
from onnx import TensorProto, helper, numpy_helper

from unitmargin.deployment.graph import Graph
from unitmargin.deployment.program import INPUT, write_program
from unitmargin.frozen import FrozenNetwork

OPSET = 18
"""Operators as onnxruntime 1.14 and later know them."""

IR_VERSION = 8
"""Of files with that operator set."""

OUTPUTS = {
    "label": TensorProto.INT64, "radius": TensorProto.DOUBLE, "margin": TensorProto.DOUBLE,
    "runner_up": TensorProto.INT64, "logits": TensorProto.DOUBLE,
}  # fmt: skip

LARGEST_FILE = 2**31 - 2**24
"""Bytes of an ONNX file: a protocol buffer has fewer than 2^31, and the nodes take some."""

INPUTS = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}


def onnx_model(
    frozen: FrozenNetwork, stated: Mapping[str, object], inputs: str = "float32"
) -> onnx.ModelProto:
    """The network under the profile ``float64``, with a dynamic batch; ``stated`` is its metadata.

    Raises:
        ValueError: a layer of a kind that has no nodes, or of unknown rounding, or more numbers
            than an ONNX file can hold.
    """
    graph, claims = write_program(frozen)
    _require_size(graph)
    nodes = [
        helper.make_node(node.operator, node.inputs, node.outputs, **node.attributes)
        for node in graph.nodes
    ]
    nodes += [helper.make_node("Identity", [inner], [name]) for name, inner in claims.items()]
    shapes: dict[str, list[str | int]] = {"logits": ["batch", frozen.n_classes]}
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "unitmargin",
            [helper.make_tensor_value_info(INPUT, INPUTS[inputs], ["batch", *frozen.in_shape])],
            [
                helper.make_tensor_value_info(name, kind, shapes.get(name, ["batch"]))
                for name, kind in OUTPUTS.items()
            ],
            [numpy_helper.from_array(array, name) for name, array in graph.stored.items()],
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


def _require_size(graph: Graph) -> None:
    size = sum(array.nbytes for array in graph.stored.values())
    if size > LARGEST_FILE:
        raise ValueError(
            f"frozen must be stored in at most {LARGEST_FILE} bytes, which an ONNX file can hold, "
            f"got {size} of weights and tables; deploy it with torch.export"
        )
