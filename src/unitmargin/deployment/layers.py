"""Deployed layers as nodes of a graph: one function a kind.

Each computes what its layer does, by sums of products in float64, comparisons and moves: the
evaluation whose errors docs/soundness.md bounds. Activations lie with the batch last.
"""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unitmargin.deployment.graph import Graph, Value
from unitmargin.deployment.transform import Transform
from unitmargin.frozen import CircularConvolution, ConvexCombination, Dense
from unitmargin.frozen.mixing import Mixing
from unitmargin.frozen.reflection import Reflection
from unitmargin.frozen.sliced import SlicedLayer
from unitmargin.layers.activations import OPLU, Abs, GroupSort, MaxMin, PartialAbs
from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.l2_pool import L2Pool
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten, MaxPool, PixelUnshuffle, Widen

Writer = Callable[[Graph, Any, Value], str]


def write_layer(graph: Graph, layer: FixedLayer, x: Value) -> Value:
    """Nodes of one layer behind ``x``.

    Raises:
        ValueError: a layer of a kind that has no nodes here.
    """
    writer = next((WRITERS[kind] for kind in type(layer).__mro__ if kind in WRITERS), None)
    if writer is None:
        raise ValueError(
            f"frozen must have layers that ONNX is written of, got {layer.kind}; add its nodes to "
            "unitmargin.deployment.layers"
        )
    return Value(writer(graph, layer, x), output_shape(layer, x.shape))


def output_shape(layer: FixedLayer, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of one output, from an evaluation of no samples.

    In float64: half precision has no Fourier transform of every length.
    """
    device = next((buffer.device for buffer in layer.buffers()), torch.device("cpu"))
    nothing = torch.empty(0, *shape, dtype=torch.float64, device=device)
    return tuple(copy.deepcopy(layer).double()(nothing).shape[1:])


def _places(shape: tuple[int, ...]) -> Tensor:
    """The number of each entry of a sample, as a batch of one."""
    return torch.arange(math.prod(shape)).reshape(1, *shape)


def _dense(graph: Graph, layer: Dense, x: Value) -> str:
    product = graph.add("MatMul", graph.numbers(layer.weight), x.name)
    return graph.add("Add", product, graph.numbers(layer.bias[:, None]))


def _convolution(graph: Graph, layer: CircularConvolution, x: Value) -> str:
    """(9): transform, a product a frequency with the bias at zero, transform back."""
    outputs, inputs = layer.size
    transform = Transform(graph, layer.transform)
    real, pairs = layer.transform.n_real, layer.transform.n_pairs
    waves = graph.split(transform.analyse(x.name, inputs), (real, pairs, pairs), axis=0)
    first = graph.add("MatMul", graph.numbers(layer.real), waves[0])
    offset = torch.zeros(real, outputs, 1, dtype=torch.float64)
    offset[0, :, 0] = layer.bias.double() * math.sqrt(layer.transform.n_pixels)
    kinds = [graph.add("Add", first, graph.numbers(offset))]
    if pairs:
        kinds += _complex_products(graph, layer.pairs, waves[1], waves[2])
    return transform.synthesise(graph.join(kinds, axis=0), outputs)


def _complex_products(graph: Graph, pairs: Tensor, real: str, imaginary: str) -> tuple[str, str]:
    """Four real products, each a sum of its own: ``Re Re - Im Im`` and ``Re Im + Im Re``."""
    weights = graph.numbers(pairs.flatten(1, 2))
    of_real, of_imaginary = (graph.add("MatMul", weights, part) for part in (real, imaginary))
    half = [pairs.shape[2]] * 2
    aa, ba = graph.split(of_real, half, axis=1)
    ab, bb = graph.split(of_imaginary, half, axis=1)
    return graph.add("Sub", aa, bb), graph.add("Add", ab, ba)


def _cut(graph: Graph, layer: SlicedLayer, x: Value) -> str:
    """Slices as ``(stack, entries, slices * batch)``."""
    cut = layer.arrangement.cut(_places(x.shape))
    return graph.reshape(graph.take(x.name, cut.mT), *cut.mT.shape[:2], -1)


def _place(graph: Graph, layer: SlicedLayer, slices: str, x: Value) -> str:
    """The map of slices, which number their entries as ``_cut`` lays them out."""
    stack, rows, side = layer.arrangement.cut(_places(x.shape)).shape
    numbers = torch.arange(stack * side * rows).view(stack, side, rows).mT
    placed = layer.arrangement.place(numbers, layer.channels)
    return graph.take(graph.reshape(slices, stack * side * rows, -1), placed.flatten())


def _mixing(graph: Graph, layer: Mixing, x: Value) -> str:
    """(8) of every slice; the absolute value is the larger one of a number and its negative."""
    product = graph.add("MatMul", graph.numbers(layer.weight), _cut(graph, layer, x))
    sums = graph.add("Add", product, graph.numbers(layer.bias[:, :, None]))
    if layer.absolute:
        signs = torch.ones(layer.weight.shape[1], 1, dtype=torch.float64)
        signs[: layer.absolute] = -1.0
        sums = graph.add("Max", sums, graph.add("Mul", sums, graph.numbers(signs)))
    return _place(graph, layer, sums, x)


def _reflection(graph: Graph, layer: Reflection, x: Value) -> str:
    """(23): the doubled positive parts go back, and are taken from the slices."""
    slices = _cut(graph, layer, x)
    product = graph.add("MatMul", graph.numbers(layer.weight), slices)
    sums = graph.add("Add", product, graph.numbers(layer.bias[:, :, None]))
    positive = graph.add("Max", sums, graph.number(0.0))
    doubled = graph.add("Add", positive, positive)
    back = graph.add("MatMul", graph.numbers(layer.weight.mT), doubled)
    return _place(graph, layer, graph.add("Sub", slices, back), x)


def _combination(graph: Graph, layer: ConvexCombination, x: Value) -> str:
    """(17): two paths, of which the second is multiplied by the rounded rest."""
    inner = x
    for sublayer in layer.sublayers():
        inner = write_layer(graph, sublayer, inner)
    share = float(layer.share)
    kept = graph.add("Mul", x.name, graph.number(share))
    return graph.add("Add", kept, graph.add("Mul", inner.name, graph.number(1.0 - share)))


def _normalize(graph: Graph, layer: Normalize, x: Value) -> str:
    """(7): a difference and a quotient an entry, both statistics repeated over the map."""
    repeats = math.prod(x.shape[1:])
    mean, std = (part.repeat_interleave(repeats)[:, None] for part in (layer.mean, layer.std))
    return graph.add("Div", graph.add("Sub", x.name, graph.numbers(mean)), graph.numbers(std))


def _moved(graph: Graph, layer: Flatten | PixelUnshuffle, x: Value) -> str:
    places = _places(x.shape)
    moved = layer(places.double()).flatten().long()
    return x.name if torch.equal(moved, places.flatten()) else graph.take(x.name, moved)


def _widen(graph: Graph, layer: Widen, x: Value) -> str:
    more = (layer.factor - 1) * math.prod(x.shape)
    return graph.add("Pad", x.name, graph.integers([0, 0, more, 0])) if more else x.name


def _windows(graph: Graph, x: Value, height: int, width: int) -> str:
    """Disjoint windows of a map as ``(entries of a window, windows, batch)``."""
    places = _places(x.shape)[0].unflatten(2, (-1, width)).unflatten(1, (-1, height))
    return graph.take(x.name, places.permute(2, 4, 0, 1, 3).reshape(height * width, -1))


def _max_pool(graph: Graph, layer: MaxPool, x: Value) -> str:
    windows = _windows(graph, x, x.shape[1] // layer.size, x.shape[2] // layer.size)
    return graph.add("ReduceMax", windows, graph.integers([0]), keepdims=0)


def _average_pool(graph: Graph, layer: ScaledAveragePool, x: Value) -> str:
    """(15): sums, then a division by the side."""
    windows = _windows(graph, x, layer.size, layer.size)
    sums = graph.add("ReduceSum", windows, graph.integers([0]), keepdims=0)
    return graph.add("Div", sums, graph.number(float(layer.size)))


def _l2_pool(graph: Graph, layer: L2Pool, x: Value) -> str:
    """(21): entries divided by the largest, unless that is 0."""
    windows = _windows(graph, x, layer.size, layer.size)
    return scaled_norms(graph, windows)


def scaled_norms(graph: Graph, rows: str) -> str:
    """Norms over the first axis, of entries divided by the largest one unless that is 0."""
    first = graph.integers([0])
    largest = graph.add("ReduceMax", graph.add("Abs", rows), first, keepdims=1)
    zero = graph.add("Equal", largest, graph.number(0.0))
    ratios = graph.add("Div", rows, graph.add("Where", zero, graph.number(1.0), largest))
    squares = graph.add("ReduceSum", graph.add("Mul", ratios, ratios), first, keepdims=0)
    return graph.add("Mul", graph.add("Squeeze", largest, first), graph.add("Sqrt", squares))


def _abs(graph: Graph, layer: Abs, x: Value) -> str:
    return graph.add("Abs", x.name)


def _partial_abs(graph: Graph, layer: PartialAbs, x: Value) -> str:
    entries = math.prod(x.shape)
    folded = x.shape[0] // layer.group * (entries // x.shape[0])
    first, rest = graph.split(x.name, (folded, entries - folded), axis=0)
    return graph.join([graph.add("Abs", first), rest], axis=0)


def _larger_and_smaller(graph: Graph, first: str, second: str, axis: int) -> str:
    pair = [graph.add(operator, first, second) for operator in ("Max", "Min")]
    return graph.join(pair, axis)


def _maxmin(graph: Graph, layer: MaxMin, x: Value) -> str:
    half = math.prod(x.shape) // 2
    first, second = graph.split(x.name, (half, half), axis=0)
    return _larger_and_smaller(graph, first, second, axis=0)


def _groups(graph: Graph, x: Value, size: int) -> str:
    """Neighbouring channels as ``(groups, size, places * batch)``."""
    return graph.reshape(x.name, x.shape[0] // size, size, -1)


def _oplu(graph: Graph, layer: OPLU, x: Value) -> str:
    first, second = graph.split(_groups(graph, x, 2), (1, 1), axis=1)
    pairs = _larger_and_smaller(graph, first, second, axis=1)
    return graph.reshape(pairs, math.prod(x.shape), -1)


def _groupsort(graph: Graph, layer: GroupSort, x: Value) -> str:
    """The values of all of a group in descending order; equal ones are the same in any order."""
    groups = _groups(graph, x, layer.group)
    count = graph.integers([layer.group])
    ordered, _ = graph.add_several("TopK", groups, count, count=2, axis=1)
    return graph.reshape(ordered, math.prod(x.shape), -1)


WRITERS: dict[type, Writer] = {
    Dense: _dense, CircularConvolution: _convolution, ConvexCombination: _combination,
    Mixing: _mixing, Reflection: _reflection, Normalize: _normalize, Flatten: _moved,
    PixelUnshuffle: _moved, Widen: _widen, MaxPool: _max_pool, ScaledAveragePool: _average_pool,
    L2Pool: _l2_pool, Abs: _abs, PartialAbs: _partial_abs, MaxMin: _maxmin, OPLU: _oplu,
    GroupSort: _groupsort,
}  # fmt: skip
"""Kinds of layers, or what they have in common, and their nodes."""
