"""Files that somebody made to be misread: model files by hand, and judges of what reads them."""

import hashlib
import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from unitmargin.frozen.profiles import PROFILES

Tensor = tuple[str, list[int], bytes]
"""Type, shape and content of a tensor, whether they fit together or not."""

LITERALS = {f"@{text}@": text for text in ("NaN", "Infinity", "-Infinity", "1e400", "-0", "1e-400")}
"""Words that stand for what JSON has no value for; see :func:`dumped`."""


class Parts(NamedTuple):
    """What a model file is made of."""

    header: dict[str, Any]
    tensors: dict[str, Tensor]

    def write(self, path: Path, change: Callable[[str], str] = lambda text: text) -> Path:
        """The file with the hash of this content; ``change`` is done to the header's text last."""
        header = {name: text for name, text in self.header.items() if name != "sha256"}
        if "sha256" in self.header:
            header["sha256"] = fingerprint(header, self.tensors)
        table: dict[str, Any] = {"__metadata__": header}
        body = b""
        for name, (dtype, shape, content) in self.tensors.items():
            ends = [len(body), len(body) + len(content)]
            table[name] = {"dtype": dtype, "shape": shape, "data_offsets": ends}
            body += content
        text = change(dumped(table)).encode("utf-8", "surrogatepass")
        path.write_bytes(len(text).to_bytes(8, "little") + text + body)
        return path

    def with_header(self, **entries: Any) -> "Parts":
        return self._replace(header=self.header | entries)


def read_parts(path: Path) -> Parts:
    """The parts of a sound file."""
    data = path.read_bytes()
    size = 8 + int.from_bytes(data[:8], "little")
    table = json.loads(data[8:size])
    header = table.pop("__metadata__", {})
    tensors = {}
    for name, entry in table.items():
        start, stop = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], data[size + start : size + stop])
    return Parts(header, tensors)


def fingerprint(header: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """The hash of a model file, as docs/soundness.md and the loader define it."""
    shapes = {name: [dtype, shape] for name, (dtype, shape, _) in tensors.items()}
    line = json.dumps({"header": header, "tensors": shapes}, sort_keys=True)
    digest = hashlib.sha256(line.encode())
    for name in sorted(tensors):
        digest.update(tensors[name][2])
    return digest.hexdigest()


def dumped(value: Any) -> str:
    """JSON, with literals in place of the words that stand for them."""
    text = json.dumps(value)
    for word, literal in LITERALS.items():
        text = text.replace(json.dumps(word), literal)
    return text


def layer(kind: Any, **configuration: Any) -> dict[str, Any]:
    return {"kind": kind, "configuration": configuration}


F64 = "F64"


def numbers(shape: list[int], value: float = 0.5) -> tuple[str, list[int], bytes]:
    count = math.prod(shape)
    return F64, shape, struct.pack(f"<{count}d", *[value] * count)


def small() -> Parts:
    """A network of a head of two classes and two inputs."""
    profiles = json.dumps(definitions())
    header = {
        "format": "unitmargin-frozen-3",
        "layers": json.dumps([layer("dense")]),
        "in_shape": "[2]",
        "domain": "null",
        "classes": '["a", "b"]',
        "facts": "{}",
        "profile": '"float64"',
        "profiles": profiles,
        "sha256": "",
    }
    return Parts(header, head(0))


def head(index: int, inputs: int = 2) -> dict[str, Any]:
    return {f"{index}.weight": numbers([2, inputs]), f"{index}.bias": numbers([2])}


def definitions() -> dict[str, Any]:
    return {name: profile.definition() for name, profile in PROFILES.items()}


def network(*layers: Any, in_shape: Any = (2,), inputs: int = 2, **tensors: Any) -> Parts:
    """Layers in front of the small head; tensors by their names, `_` for a point."""
    stated = json.dumps([*layers, layer("dense")])
    named = {name.replace("_", "."): tensor for name, tensor in tensors.items()}
    content = named | head(len(layers), inputs)
    return Parts(small().header, content).with_header(
        layers=stated, in_shape=json.dumps(list(in_shape))
    )


def convolution(map_size: Any, real: int = 1, paired: int = 0, **kwargs: Any) -> Parts:
    return network(
        layer("circular_convolution", map_size=map_size),
        layer("flatten"),
        t0_real=0,
        **kwargs,
    )._replace(
        tensors={
            "0.real": numbers([real, 1, 1]),
            "0.pairs": numbers([paired, 2, 1, 1]),
            "0.bias": numbers([1]),
        }
        | head(2, kwargs.get("inputs", 2))
    )


MIXED: dict[str, dict[str, Any]] = {
    "window": {"absolute": 1, "map_size": [2, 4], "size": 2, "shift": 1},
    "fold": {"absolute": 1, "map_size": [2, 4], "size": 2, "shift": 1},
    "shift": {"absolute": 1, "map_size": [2, 4]},
    "position": {"absolute": 1, "map_size": [2, 4]},
    "group": {"absolute": 1, "map_size": [2, 4], "size": 4},
}
"""Configurations of mixing layers of maps of 8 channels."""

STACKS = {
    "window": [1, 32], "fold": [1, 32], "shift": [1, 8], "position": [8, 8], "group": [2, 32],
}  # fmt: skip
"""How many matrices they have, and of which side."""


def mixing(
    kind: str, stack: Any = None, bias: Any = None, without: str = "", **change: Any
) -> Parts:
    """A network of a mixing layer, with another stack, bias or entry of its configuration."""
    configuration = {name: v for name, v in MIXED[kind].items() if name != without} | change
    count, side = STACKS[kind] if stack is None else stack
    tensors = {
        "0.weight": numbers([count, side, side], 0.1),
        "0.bias": numbers([count, side] if bias is None else bias),
    }
    parts = network(
        layer(f"{kind}_mixing", **configuration), layer("flatten"), in_shape=(8, 2, 4), inputs=64
    )
    return parts._replace(tensors=tensors | head(2, 64))


def reflection(
    kind: str, weight: Any = None, bias: Any = None, without: str = "", **change: Any
) -> Parts:
    """A network of a reflection of two rows, with another weight, bias or entry of its
    configuration."""
    configuration = {n: v for n, v in MIXED[kind].items() if n not in (without, "absolute")}
    count, side = STACKS[kind]
    tensors = {
        "0.weight": numbers([count, 2, side] if weight is None else weight, 0.1),
        "0.bias": numbers([count, 2] if bias is None else bias),
    }
    stated = layer(f"{kind}_reflection", **configuration | change)
    parts = network(stated, layer("flatten"), in_shape=(8, 2, 4), inputs=64)
    return parts._replace(tensors=tensors | head(2, 64))


def nested(depth: int) -> Parts:
    inner = layer("convex_combination", branch=[])
    tensors = {"0." + "branch.0." * deep + "share": numbers([]) for deep in range(depth + 1)}
    for _ in range(depth):
        inner = layer("convex_combination", branch=[inner])
    made = network(inner)
    return made._replace(tensors=tensors | head(1))
