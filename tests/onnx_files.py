"""Exported files by hand: linear networks whose claims are known, as ONNX graphs."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from unitmargin.foundation.files import file_sha256
from unitmargin.frozen import FrozenNetwork
from unitmargin.guard.onnx_model import FORMAT

CAUTION = 0.999
"""Share of margin / largest constant that is claimed: less than can be proved."""


def write_linear(file: Path, frozen: FrozenNetwork, model: Path) -> None:
    """A network that is a head alone, as a file that was exported from the model file."""
    weight, bias = (t.double().numpy() for t in (frozen.head.weight, frozen.head.bias))
    scale = CAUTION / float(frozen.pair_constants().max())
    constants = {"w": weight.T, "b": bias, "k": np.array([2]), "scale": np.array(scale)}
    constants |= {"first": np.array(0), "second": np.array(1)}
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.DOUBLE),
        helper.make_node("MatMul", ["wide", "w"], ["products"]),
        helper.make_node("Add", ["products", "b"], ["logits"]),
        helper.make_node("TopK", ["logits", "k"], ["values", "places"], axis=1),
        helper.make_node("Gather", ["places", "first"], ["label"], axis=1),
        helper.make_node("Gather", ["places", "second"], ["runner_up"], axis=1),
        helper.make_node("Gather", ["values", "first"], ["top"], axis=1),
        helper.make_node("Gather", ["values", "second"], ["next"], axis=1),
        helper.make_node("Sub", ["top", "next"], ["margin"]),
        helper.make_node("Mul", ["margin", "scale"], ["radius"]),
    ]
    kinds = {
        "label": TensorProto.INT64, "runner_up": TensorProto.INT64,
        "margin": TensorProto.DOUBLE, "radius": TensorProto.DOUBLE,
    }  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *frozen.in_shape])],
        [helper.make_tensor_value_info(name, kind, ["batch"]) for name, kind in kinds.items()],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    stated = {
        "format": FORMAT,
        "classes": json.dumps(frozen.classes),
        "in_shape": json.dumps(frozen.in_shape),
        "domain": json.dumps(frozen.domain),
        "profile": frozen.profile,
        "model_sha256": file_sha256(model),
    }
    helper.set_model_props(made, stated)
    onnx.save(made, file)
