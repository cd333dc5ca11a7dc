"""What a model file may say: JSON with one meaning, and limits of everything that it can name.

A file is somebody else's. Reading one takes time and memory in proportion to its size, so whatever
it names alone (a side, a count) has a limit here, and shapes are compared with the numbers that are
there before anything is made. The checker has the same limits in a program of its own.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from unitmargin.foundation.files import parse_json
from unitmargin.foundation.numbers import shown

LONGEST_HEADER = 2**22
"""Bytes of a header: a thousand layers and the names of 20,000 classes need a third. As objects of
Python it takes twenty times as much memory."""

MOST_LAYERS = 1000
"""Layers of a network, those of branches included: published ones have fewer than 200."""

MOST_TENSORS = 4 * MOST_LAYERS
"""Tensors of a network; no layer has more than three of its own."""

DEEPEST_BRANCH = 8
"""Branches within branches; the paper's peers have one."""

DEEPEST_JSON = 64
"""Lists and objects within each other: twice what the deepest branches need, and far from where the
parser gives up, which depends on who calls it."""

LONGEST_NAME = 1000
"""Characters of the name of a class."""

MOST_AXES = 8
"""Axes of a tensor or of an input."""

LARGEST_SIDE = 1024
"""Side of a map that a configuration names; for a convolution the checker needs a table of its
square."""

LARGEST_INPUT = 2**28
"""Numbers of one input, and largest size that a file may name."""

MAY_BE_ZERO = ("absolute", "shift")
"""Numbers of a configuration that count something of which there may be none."""


def parse(text: str) -> Any:
    """The value of a JSON text that every reader reads alike.

    Raises:
        ValueError: what :func:`parse_json` refuses, half a surrogate pair, or nesting beyond
            ``DEEPEST_JSON``.
    """
    value = parse_json(text)
    _require_depth(value, DEEPEST_JSON)
    json.dumps(value, ensure_ascii=False).encode()  # raises for half a surrogate pair
    return value


def facts_text(facts: Mapping[Any, Any]) -> str:
    """Facts as JSON, which gives them back as they are.

    Raises:
        ValueError: values that JSON does not have, names that are no text.
    """
    try:
        text = json.dumps(facts, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"facts must be JSON values, but {error}; leave others out") from None
    back = json.loads(text)
    for name, fact in facts.items():
        if name not in back or back[name] != fact:
            raise ValueError(
                f"facts must come back from JSON as they are, got {shown({name: fact})}; name them "
                "by text, and make lists of tuples"
            )
    return text


def require_length(header: dict[str, str], tensors: dict[str, Tensor]) -> None:
    """Raise unless the header of a file with these entries may be as long as it gets."""
    end = sum(tensor.nbytes for tensor in tensors.values())  # no offset has more digits
    entries: dict[str, Any] = {
        name: {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [end, end]}
        for name, tensor in tensors.items()
    }
    text = json.dumps(
        {"__metadata__": header, **entries}, ensure_ascii=False, separators=(",", ":")
    )
    length = len(text.encode())
    if length > LONGEST_HEADER:
        raise ValueError(
            f"its header must have at most {LONGEST_HEADER} bytes, got {length}; shorten facts and "
            "names of classes"
        )


def read_table(path: Path) -> dict[str, Any]:
    """The header of a safetensors file, of which its own reader takes what has several meanings.

    Raises:
        ValueError: a header that is damaged, too long, or no table of texts and tensors.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > LONGEST_HEADER:
            raise ValueError(f"its header must have at most {LONGEST_HEADER} bytes, got {length}")
        text = file.read(length).decode()
    table = parse(text)
    if not isinstance(table, dict) or not text.startswith("{"):
        raise ValueError("its header must be an object")
    for name, entry in table.items():
        if name != "__metadata__":
            _require_tensor(name, entry)
    return table


def require_layers(layers: Any) -> None:
    """Raise unless it is a list of layers, whose configurations hold sizes and branches alone.

    Raises:
        ValueError: anything else, too many layers, or branches that are too deep.
    """
    if (found := _count(layers, DEEPEST_BRANCH)) > MOST_LAYERS:
        raise ValueError(f"a network must have at most {MOST_LAYERS} layers, got {found}")


def is_size(value: object) -> bool:
    """Whether a value of JSON may count something: a whole number, and neither true nor 2.0."""
    return type(value) is int and 0 < value <= LARGEST_INPUT


def _require_depth(value: Any, left: int) -> None:
    inner = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list):
        if left == 0:
            raise ValueError(f"JSON must have at most {DEEPEST_JSON} levels")
        for one in inner:
            _require_depth(one, left - 1)


def _require_tensor(name: str, entry: Any) -> None:
    """Raise unless the entry says type, shape and place, and nothing else."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"tensor {name} must have a type, a shape and offsets")
    shape = entry["shape"]
    if not isinstance(shape, list) or len(shape) > MOST_AXES:
        raise ValueError(f"tensor {name} must have at most {MOST_AXES} axes")
    if not all(is_size(count) or count == 0 for count in shape):
        raise ValueError(f"tensor {name} must have sizes up to {LARGEST_INPUT}, got {shape}")


def _count(layers: Any, depth: int) -> int:
    if not isinstance(layers, list):
        raise ValueError(f"layers must be a list, got {type(layers).__name__}")
    if depth < 0:
        raise ValueError(f"branches must lie at most {DEEPEST_BRANCH} deep")
    found = len(layers)
    for layer in layers:
        if not isinstance(layer, dict) or set(layer) != {"kind", "configuration"}:
            raise ValueError(f"a layer must be given by kind and configuration, got {layer}")
        if not isinstance(layer["configuration"], dict):
            raise ValueError(f"a configuration must be an object, got {layer['configuration']}")
        for name, value in layer["configuration"].items():
            if name == "branch":
                found += _count(value, depth - 1)
            elif name in MAY_BE_ZERO and type(value) is int and value == 0:
                continue
            elif not all(map(is_size, value if isinstance(value, list) else [value])):
                raise ValueError(f"{name} must be a size, got {value}")
            elif name == "map_size" and max(value) > LARGEST_SIDE:
                raise ValueError(f"{name} must be at most {LARGEST_SIDE} on both sides")
    return found
