"""The Fourier transform of maps as nodes: real products with stored tables, and no complex number.

Equation numbers are those of docs/soundness.md. Waves lie as ``(wave, channel, batch)``, in the
order of their kinds: self-conjugate ones, real parts of pairs, imaginary parts.
"""

from dataclasses import dataclass

from unitmargin.deployment.graph import Graph
from unitmargin.layers.fourier import CircularTransform
from unitmargin.layers.separable import Butterfly, by_kind, separable


@dataclass(frozen=True)
class Transform:
    """Both ways of the transform of maps of one size: by one table as (10), or by a table a side as
    (24)."""

    graph: Graph
    circular: CircularTransform

    def analyse(self, maps: str, channels: int) -> str:
        """Waves of maps ``(channels * pixels, batch)``."""
        graph, (height, width) = self.graph, self.circular.map_size
        pixels = height * width
        if self.circular.by_matrix:
            rows = graph.add("Transpose", graph.reshape(maps, channels, pixels, -1), perm=[1, 0, 2])
            waves = self._product(self._table(), rows, pixels)
            return graph.reshape(waves, pixels, channels, -1)
        parts = separable(self.circular.map_size)
        cut = graph.reshape(maps, channels, height, width, -1)
        across = graph.add("Transpose", cut, perm=[2, 1, 0, 3])  # (w, h, c, batch)
        turned = self._product(graph.numbers(parts.columns), across, width)
        both = graph.reshape(turned, width, height, channels, -1)
        down = graph.add("Transpose", both, perm=[1, 0, 2, 3])
        products = self._product(graph.numbers(parts.rows), down, height)
        return self._joined(graph.reshape(products, pixels, channels, -1), parts.join)

    def synthesise(self, waves: str, channels: int) -> str:
        """Maps ``(channels * pixels, batch)`` of waves: the same steps transposed, backwards."""
        graph, (height, width) = self.graph, self.circular.map_size
        pixels = height * width
        if self.circular.by_matrix:
            rows = self._product(self._table(transposed=True), waves, pixels)
            turned = graph.reshape(rows, pixels, channels, -1)
            maps = graph.add("Transpose", turned, perm=[1, 0, 2])
            return graph.reshape(maps, channels * pixels, -1)
        parts = separable(self.circular.map_size)
        products = self._joined(waves, parts.join.transposed())
        down = self._product(graph.numbers(parts.rows.mT), products, height)
        both = graph.reshape(down, height, width, channels, -1)
        across = graph.add("Transpose", both, perm=[1, 0, 2, 3])
        turned = self._product(graph.numbers(parts.columns.mT), across, width)
        cut = graph.reshape(turned, width, height, channels, -1)
        maps = graph.add("Transpose", cut, perm=[2, 1, 0, 3])
        return graph.reshape(maps, channels * pixels, -1)

    def _product(self, table: str, name: str, side: int) -> str:
        """A table from the left, the first axis of the tensor being its ``side``."""
        return self.graph.add("MatMul", table, self.graph.reshape(name, side, -1))

    def _joined(self, waves: str, join: Butterfly) -> str:
        """The waves of both sides as those of the map, or back: two terms a row, each scaled."""
        graph = self.graph
        terms = [
            graph.add(
                "Mul",
                graph.take(waves, join.columns[:, term]),
                graph.numbers(join.entries[:, term, None, None]),
            )
            for term in range(2)
        ]
        return graph.add("Add", *terms)

    def _table(self, transposed: bool = False) -> str:
        table = self.circular.matrix().cpu()[by_kind(self.circular.map_size)]
        return self.graph.numbers(table.mT if transposed else table)
