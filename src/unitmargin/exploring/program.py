"""The certified evaluation of a network as data of a page: nodes, and numbers as bytes."""

from dataclasses import dataclass
from typing import Any

from unitmargin.deployment.program import write_program
from unitmargin.frozen import FrozenNetwork

MOST_NUMBERS = 16_000_000
"""Stored numbers that a page may hold, of network and certificate. The paper's network on images of
32 x 32 has ten million: a file of 57 MB, and 0.05 s an evaluation. The one that ``init``
proposes for photos of 64 x 64 has 13 million: 76 MB."""

KINDS = {"float32": "f4", "float64": "f8", "int64": "i4"}
"""How numbers are stored, by their type; whole ones are places and lengths, all below 2^31."""

ALIGNMENT = 8


@dataclass(frozen=True)
class Program:
    """What ``makeProgram`` of the page's scripts reads.

    Attributes:
        description: nodes, the place of each stored tensor, names of claims, shape of an input.
        numbers: of all stored tensors, little endian.
    """

    description: dict[str, Any]
    numbers: bytes


def page_program(frozen: FrozenNetwork) -> Program:
    """The network under the profile ``float64``, with its certificate.

    Raises:
        ValueError: more stored numbers than ``MOST_NUMBERS``, or a layer that has no nodes.
    """
    _require_size(sum(tensor.numel() for tensor in frozen.network.buffers()))
    graph, claims = write_program(frozen)
    _require_size(sum(array.size for array in graph.stored.values()))
    stored: dict[str, list[Any]] = {}
    parts: list[bytes] = []
    offset = 0
    for name, array in graph.stored.items():
        kind = KINDS[str(array.dtype)]
        part = array.astype("<" + kind).tobytes()
        stored[name] = [kind, list(array.shape), offset, array.size]
        parts.append(part + bytes(-len(part) % ALIGNMENT))
        offset += len(parts[-1])
    description = {
        "inShape": list(frozen.in_shape),
        "nodes": [
            [node.operator, node.inputs, node.outputs, node.attributes] for node in graph.nodes
        ],
        "stored": stored,
        "claims": claims,
    }
    return Program(description, b"".join(parts))


def _require_size(size: int) -> None:
    if size > MOST_NUMBERS:
        raise ValueError(
            f"frozen must have at most {MOST_NUMBERS:,} stored numbers, which a page can hold, got "
            f"{size:,}; see its certificates with `unitmargin report`, or train a smaller network, "
            "with a smaller resize under [data] or smaller groups in the plan"
        )
