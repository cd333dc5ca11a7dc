"""A graph under construction: nodes, stored numbers, and names for both.

Its operators are those of ONNX: ``network.py`` makes an ONNX model of it, and ``exploring`` a page.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

DOUBLE = 11
"""The number of float64 in ONNX."""


class Node(NamedTuple):
    """An operator, the names it reads and the names it gives."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


class Value(NamedTuple):
    """A float64 tensor of the graph that holds a batch: its name, and the shape of one sample.

    It lies with the batch last: ``(entries of a sample, batch)``, so that a move of entries is a
    move of whole rows, and a product is one of stored matrices from the left.
    """

    name: str
    shape: tuple[int, ...]


class Graph:
    """Nodes in the order of evaluation, and the numbers that they read."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.stored: dict[str, NDArray[Any]] = {}
        self._names: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output; the name of that output."""
        return self.add_several(operator, *inputs, count=1, **attributes)[0]

    def add_several(self, operator: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """A node with ``count`` outputs, by name."""
        names = [f"{operator.lower()}_{len(self.nodes)}_{index}" for index in range(count)]
        self.nodes.append(Node(operator, inputs, tuple(names), attributes))
        return names

    def store(self, array: NDArray[Any]) -> str:
        """Numbers as they are, once each; their name."""
        solid = np.ascontiguousarray(array)
        key = (str(solid.dtype), solid.shape, hashlib.sha256(solid.tobytes()).digest())
        if key not in self._names:
            self._names[key] = f"stored_{len(self.stored)}"
            self.stored[self._names[key]] = solid
        return self._names[key]

    def numbers(self, tensor: Tensor) -> str:
        """A tensor of numbers in float64; weights of float32 are stored so, and widened."""
        array = tensor.detach().cpu()
        if array.dtype == torch.float32 and array.ndim:
            return self.add("Cast", self.store(array.numpy()), to=DOUBLE)
        return self.store(array.double().numpy())

    def number(self, value: float) -> str:
        return self.store(np.array(value, dtype=np.float64))

    def integers(self, values: Sequence[int] | Tensor) -> str:
        return self.store(np.asarray(values, dtype=np.int64))

    def reshape(self, name: str, *shape: int) -> str:
        """Another shape of the same numbers; -1 for the axis that holds the batch."""
        return self.add("Reshape", name, self.integers(shape))

    def take(self, name: str, rows: Tensor) -> str:
        """Some rows, in an order; those of a shape are a tensor of that shape."""
        return self.add("Gather", name, self.integers(rows), axis=0)

    def split(self, name: str, sizes: Sequence[int], axis: int) -> list[str]:
        """Parts of an axis; empty ones are no names."""
        present = [size for size in sizes if size]
        if len(present) == 1:
            parts = [name]
        else:
            parts = self.add_several(
                "Split", name, self.integers(present), count=len(present), axis=axis
            )
        left = iter(parts)
        return [next(left) if size else "" for size in sizes]

    def join(self, names: Sequence[str], axis: int) -> str:
        """Tensors in a row along an axis; "" stands for an empty one."""
        present = [name for name in names if name]
        return present[0] if len(present) == 1 else self.add("Concat", *present, axis=axis)
