"""ONNX files with a closed form: linear classifiers, as `unitmargin export` would write them."""

import json
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from unitmargin.guard.onnx_model import FORMAT

BEYOND = 1e30
"""Magnitude of logits beyond which the file makes no claim: its label is -1."""

NODES = (
    "flat = Reshape(x, row)", "wide = Cast(flat, to=DOUBLE)", "products = MatMul(wide, weight)",
    "logits = Add(products, bias)", "top, order = TopK(logits, two, axis=1)",
    "best, second = Split(top, axis=1, num_outputs=2)",
    "first_class, second_class = Split(order, axis=1, num_outputs=2)",
    "differences = Sub(best, second)", "absolute = Abs(best)", "clear = Less(absolute, beyond)",
    "labels = Where(clear, first_class, none)", "others = Where(clear, second_class, none)",
    "margins = Where(clear, differences, zero)", "label = Squeeze(labels, one)",
    "runner_up = Squeeze(others, one)", "margin = Squeeze(margins, one)",
    "radius = Identity(margin)",
)  # fmt: skip
"""The graph, a line a node: rows at mutual distance 1, so the margin is the distance."""


def write_linear(
    path: Path,
    weight: NDArray[np.float64],
    bias: NDArray[np.float64],
    in_shape: tuple[int, ...],
    domain: tuple[float, float] | None = (0.0, 1.0),
    inputs: int = TensorProto.FLOAT,
    stated: dict[str, str] | None = None,
) -> Path:
    """A classifier ``x W + b`` whose columns have mutual distance 1, so that its radius is exact
    up to rounding; ``stated`` replaces entries of the metadata."""
    constants = {
        "weight": weight, "bias": bias, "beyond": np.array(BEYOND), "zero": np.array(0.0),
        "row": np.array([-1, weight.shape[0]]), "two": np.array([2]), "one": np.array([1]),
        "none": np.array(-1),
    }  # fmt: skip
    outputs = {
        "label": TensorProto.INT64, "runner_up": TensorProto.INT64, "margin": TensorProto.DOUBLE,
        "radius": TensorProto.DOUBLE,
    }  # fmt: skip
    graph = helper.make_graph(
        [_node(line) for line in NODES],
        "linear",
        [helper.make_tensor_value_info("x", inputs, ["batch", *in_shape])],
        [
            *(
                helper.make_tensor_value_info(name, kind, ["batch"])
                for name, kind in outputs.items()
            ),
            helper.make_tensor_value_info("logits", TensorProto.DOUBLE, ["batch", weight.shape[1]]),
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    metadata = {
        "format": FORMAT, "classes": json.dumps([f"class {k}" for k in range(weight.shape[1])]),
        "in_shape": json.dumps(list(in_shape)), "domain": json.dumps(domain), "profile": "float64",
        "units": "inputs", "model_sha256": "0" * 64,
    }  # fmt: skip
    helper.set_model_props(model, metadata | (stated or {}))
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString())
    return path


def write_half_planes(
    path: Path,
    domain: tuple[float, float] | None = (0.0, 1.0),
    inputs: int = TensorProto.FLOAT,
    stated: dict[str, str] | None = None,
) -> Path:
    """Two classes of the plane, divided by the line where the entries sum to 1: class 1 above."""
    normal = np.array([[0.0, np.sqrt(0.5)], [0.0, np.sqrt(0.5)]])
    return write_linear(path, normal, np.array([0.0, -np.sqrt(0.5)]), (2,), domain, inputs, stated)


def write_corners(path: Path, in_shape: tuple[int, ...], n_classes: int = 10) -> Path:
    """A class for each of the first entries: the largest one wins, and the distance is the
    difference of the two largest over the root of 2."""
    weight = np.zeros((int(np.prod(in_shape)), n_classes))
    np.fill_diagonal(weight, np.sqrt(0.5))
    return write_linear(path, weight, np.zeros(n_classes), in_shape)


def _node(line: str) -> onnx.NodeProto:
    """``a, b = Op(c, d, axis=1)``."""
    outputs, call = line.split(" = ", 1)
    operation, arguments = call.rstrip(")").split("(")
    given = arguments.split(", ")
    options = dict(argument.split("=") for argument in given if "=" in argument)
    values = {k: TensorProto.DOUBLE if v == "DOUBLE" else int(v) for k, v in options.items()}
    inputs = [argument for argument in given if "=" not in argument]
    return helper.make_node(operation, inputs, outputs.split(", "), **values)
