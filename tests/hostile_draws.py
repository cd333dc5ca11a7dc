"""Changes of files by chance, for hypothesis."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hostile import LITERALS, Parts, dumped
from hypothesis import strategies as st

ODD = st.sampled_from([
    None, True, False, 0, 1, -1, 2, 2.0, 3, 7, 1000, 2**31, 2**63, 2**64, 10**30, 1e308, 0.5, "",
    "a", "abs", "dense", "branch", "size", "é\n\u2028", "x" * 2000, [], {}, [[]], [1, 2], [2, 3],
    {"kind": "abs", "configuration": {}}, {"size": 2}, *LITERALS,
])  # fmt: skip
"""What may stand anywhere in JSON."""


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """JSON with one place changed: another value, an entry less, twice or more, or a swap."""
    inner = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(
        value, list) else []  # fmt: skip
    if inner and draw(st.integers(0, 3)):
        place = draw(st.sampled_from(inner))
        copied = dict(value) if isinstance(value, dict) else list(value)
        copied[place] = draw(changed(value[place]))
        return copied
    what = draw(st.integers(0, 4))
    if isinstance(value, list) and value and what:
        index = draw(st.integers(0, len(value) - 1))
        if what == 1:
            return [*value, *value]
        if what == 2:
            return value[:index] + value[index + 1 :]
        if what == 3:
            return [*value[:index], value[index], *value[index:]]
        return [*value[:index], draw(ODD), *value[index:]]
    if isinstance(value, dict) and value and what:
        key = draw(st.sampled_from(list(value)))
        if what == 1:
            return {name: entry for name, entry in value.items() if name != key}
        if what == 2:
            return value | {draw(st.text(max_size=3)): draw(ODD)}
        return value | {key: draw(ODD)}
    return draw(ODD)


NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.0**-1074, 2.0**-1022, 2.0**-149, 1e-40, 2.0**40, 2.0**41, 1e38,
           1e300, float("inf"), float("nan")]  # fmt: skip


@st.composite
def tensors_changed(draw: st.DrawFn, tensors: dict[str, Any]) -> dict[str, Any]:
    """One tensor with another name, type, shape or content; a content of the length of its shape
    or not."""
    name = draw(st.sampled_from(list(tensors)))
    dtype, shape, content = tensors[name]
    what = draw(st.integers(0, 12))
    rest = {other: tensor for other, tensor in tensors.items() if other != name}
    if what == 0:
        return rest
    if what == 1:
        other = draw(st.sampled_from([*tensors, "x", "0.x", "0", "0.branch.0.weight", "99.bias"]))
        return rest | {other: tensors[name]}
    if what == 2:
        dtype = draw(st.sampled_from(["F64", "F16", "BF16", "I32", "BOOL", "F8_E4M3", "C64", "?"]))
        return tensors | {name: (dtype, shape, content)}
    if what == 3:
        sizes = st.sampled_from([0, 1, 2, 3, 4, 5, 6, 2**31, 2**62, 10**30])
        return tensors | {name: (dtype, draw(st.lists(sizes, max_size=4)), content)}
    if what == 4:
        shape = draw(st.lists(st.integers(0, 6), max_size=4))
        return tensors | {name: (dtype, shape, b"\0\0\x80?" * math.prod(shape))}
    values = np.frombuffer(content, "<f4").copy()
    number = draw(st.sampled_from(NUMBERS))
    with np.errstate(all="ignore"):
        if what % 2 and len(values):
            values[draw(st.integers(0, len(values) - 1))] = np.float64(number).astype("<f4")
        else:
            values *= np.float64(number).astype("<f4")
    return tensors | {name: (dtype, shape, values.tobytes())}


WORDS = ['"dtype"', '"shape"', '"layers"', "0, ", "]", "{", '"']
REPLACED = ['"dtype": "F32", "dtype"', "-0, ", "1e400, ", "NaN", "", "[", '""']


@st.composite
def models(draw: st.DrawFn, parts: Parts) -> tuple[Parts, Callable[[str], str]]:
    """A model file with one to three changes, and a change of its header's text."""
    kinds = ["layers", "layers", "kind", "kind", "facts", *["tensors"] * 4, *parts.header]
    for _ in range(draw(st.sampled_from([1, 1, 1, 1, 2, 3]))):
        entry = draw(st.sampled_from(kinds))
        if entry == "tensors":
            parts = parts._replace(tensors=draw(tensors_changed(parts.tensors)))
        elif entry == "kind":
            old, new = (draw(st.sampled_from(["abs", "maxmin", "oplu", "flatten"])) for _ in "ab")
            layers = parts.header["layers"].replace(f'"{old}"', f'"{new}"', 1)
            parts = parts.with_header(layers=layers)
        elif entry in ("format", "sha256"):
            odd = draw(ODD)
            parts = parts.with_header(**{entry: odd if isinstance(odd, str) else "x"})
        else:
            try:
                value = json.loads(parts.header[entry])
            except (ValueError, RecursionError):
                continue
            text = dumped(draw(changed(value)))
            parts = parts.with_header(**{entry: text})
    word = draw(st.sampled_from([*[""] * 30, *WORDS]))
    new = draw(st.sampled_from(REPLACED))
    return parts, (lambda text: text.replace(word, new, 1) if word else text)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes flipped, cut off, repeated or replaced."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(0, len(data) - 1)))
        what = draw(st.integers(0, 4))
        if what == 0 and data:
            data[place] ^= 1 << draw(st.integers(0, 7))
        elif what == 1:
            del data[place:]
        elif what == 2:
            data[place:place] = data[place : place + draw(st.integers(1, 64))]
        elif what == 3:
            data[place : place + 8] = draw(st.sampled_from(
                [b"\xff" * 8, b"\0" * 8, b"9" * 8, b"[[[[[[[[", b",,,,,,,,", b"\n" * 8, b"-0.0e999"]
            ))  # fmt: skip
        else:
            del data[place : place + draw(st.integers(1, 16))]
    return bytes(data)
